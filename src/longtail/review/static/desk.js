// The desk: fetches texts, takes keys, files decisions.

import { Refused, Unreachable, get, persistently, post, upload, whenATokenIsNeeded } from "./api.js";
import { Outbox } from "./outbox.js";
import { $, drawHints, drawLabels, drawMatches, drawReasons, drawText } from "./view.js";
import { keep, kept, otherLanguage, word, writeWords } from "./words.js";

const HISTORY = 50;
const OWN_QUEUE = "desk";

const desk = {
  store: false, // whether the server keeps decisions
  queue: OWN_QUEUE,
  person: "",
  item: null,
  ready: [], // texts that are claimed and drawn next
  history: [], // what was filed from this page, for undo
  cursor: 0,
  why: false,
  matches: [],
  chosen: 0,
  generation: 0, // rises with every text that is shown; late answers for another one are dropped
};

const outbox = new Outbox(
  (n, isCutOff) => {
    $("status").dataset.waiting = n;
    if (isCutOff) say(word("waiting")(n));
    else if (n === 0 && $("status").dataset.cutOff) say(word("sent"));
    $("status").dataset.cutOff = isCutOff ? "yes" : "";
  },
  (why) => say(word("refused")(why)),
);

function say(text) {
  $("status").textContent = text;
}

function review(path) {
  return `/v1/review/queues/${encodeURIComponent(desk.queue)}/${path}`;
}

// Asks for one line in a dialog, and returns it.
function ask(title, label, value = "") {
  $("ask-title").textContent = word(title);
  $("ask-label").textContent = word(label);
  $("answer").value = value;
  $("ask").showModal();
  return new Promise((resolve) => {
    $("ask").addEventListener("close", () => resolve($("answer").value.trim() || value), { once: true });
  });
}

async function askPerson() {
  do desk.person = await ask("askName", "askNameLabel", desk.person);
  while (!desk.person);
  keep("person", desk.person);
  $("person").textContent = desk.person;
}

// ---- texts

function received(answer) {
  const { done, texts } = answer.progress;
  $("progress").textContent = word("progress")(done, texts);
  const item = answer.item;
  if (!item) return null;
  const filed = item.filed && new Set(item.filed);
  item.labels = item.suggested.map((one) => ({ ...one, checked: filed ? filed.has(one.id) : one.checked }));
  const shown = new Set(item.suggested.map((one) => one.id));
  for (const id of item.filed ?? []) {
    if (!shown.has(id)) item.labels.push({ id, name: id, path: [], score: null, checked: true });
  }
  return item;
}

function atHand() {
  const items = [desk.item, ...desk.ready].filter(Boolean).map((item) => item.text);
  return [...new Set([...items, ...outbox.texts()])].filter((text) => text > 0);
}

async function fetchItem() {
  const request = () => post(review("next"), { person: desk.person, without: atHand().slice(-100) });
  return received(await persistently(request, () => say(word("offline"))));
}

async function next() {
  desk.item = null;
  if (!desk.store) return showStart();
  if (!desk.ready.length) {
    say(word("loading"));
    const item = await fetchItem();
    if (!item) {
      showStart();
      say(word("empty"));
      return undefined;
    }
    desk.ready.push(item);
    say("");
  }
  show(desk.ready.shift());
  return prefetch();
}

// Claims the text after this one, so that Enter shows it at once.
async function prefetch() {
  if (desk.ready.length) return;
  const generation = desk.generation;
  try {
    const item = received(await post(review("next"), { person: desk.person, without: atHand() }));
    if (!item) return;
    if (generation === desk.generation || !atHand().includes(item.text)) desk.ready.push(item);
  } catch (error) {
    if (!(error instanceof Unreachable || error instanceof Refused)) throw error; // Enter will ask again
  }
}

function show(item) {
  Object.assign(desk, { item, cursor: 0, why: false, matches: [], generation: desk.generation + 1 });
  item.shownAt = performance.now();
  item.keystrokes = 0;
  $("start").hidden = true;
  $("desk").hidden = false;
  $("why").hidden = true;
  closeSearch();
  drawText(item);
  redraw();
  scrollTo(0, 0);
  $("text").focus({ preventScroll: true });
}

function redraw() {
  drawLabels(desk.item, desk.cursor, { toggle, why: showWhy });
}

function showStart() {
  desk.item = null;
  $("desk").hidden = true;
  $("start").hidden = false;
  $("fetch").hidden = !desk.store;
  $("pasted").value = "";
  $("pasted").focus();
}

async function bring(fields) {
  say(word("loading"));
  let answer;
  if (desk.store) {
    answer = await post(review("texts"), { person: desk.person, fields });
    fillQueues(desk.queue);
  } else {
    const { calibrated } = desk.model;
    const tag = async (more) => (await post("/v1/tag", { records: [record(fields)], k: 9, ...more })).results[0];
    const [tagged, filed] = [await tag({}), await tag({ threshold: calibrated ? "auto" : 0.5 })];
    const suggested = tagged.labels.map((one, place) => ({ ...one, checked: place < filed.labels.length }));
    answer = { progress: {}, item: { text: 0, fields, suggested, calibrated, blind: false, route: tagged.route, cut: tagged.cut } };
  }
  const item = received(answer);
  if (!desk.store) $("progress").textContent = "";
  if (desk.item) desk.ready.unshift(desk.item);
  say("");
  show(item);
}

// The fields of a text as the model reads them: those that it needs and the text lacks are empty.
function record(fields) {
  return { ...Object.fromEntries(desk.model.fields.map((name) => [name, ""])), ...fields };
}

async function openFiles(files) {
  for (const file of files) {
    say(word("reading")(file.name));
    try {
      const { fields } = await upload(`/v1/documents?name=${encodeURIComponent(file.name)}`, file);
      await bring(fields);
    } catch (error) {
      say(error.message);
    }
  }
}

// ---- decisions

function file(kind) {
  const { item } = desk;
  if (!item) return;
  const checked = item.labels.filter((one) => one.checked);
  if (desk.store) {
    const shown = new Set(item.suggested.map((one) => one.id));
    outbox.add(review("decisions"), {
      key: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`,
      kind,
      text: item.text,
      person: desk.person,
      labels: kind === "accept" ? checked.map((one) => one.id) : [],
      names: Object.fromEntries(checked.filter((one) => !shown.has(one.id)).map((one) => [one.id, one.name])),
      suggested: item.suggested.map(({ id, name, score, checked }) => ({ id, name, score, checked })),
      revision: item.revision,
      threshold: item.threshold,
      seconds: Math.round(performance.now() - item.shownAt) / 1000,
      keystrokes: item.keystrokes,
    });
    desk.history.push(item);
    desk.history.splice(0, desk.history.length - HISTORY);
  }
  const names = checked.map((one) => one.name).join(", ");
  say(kind === "skip" ? word("skipped") : desk.store ? `${word("accepted")(checked.length)}${names ? `: ${names}` : ""}` : `${names}: ${word("notKept")}`);
  const told = $("status").textContent;
  next().then(() => {
    if (!$("status").textContent) say(told);
  });
}

async function undo() {
  if (!desk.store) return;
  const message = { key: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`, person: desk.person };
  const last = desk.history.pop();
  if (last) {
    outbox.add(review("undo"), message);
    if (desk.item) desk.ready.unshift(desk.item);
    show(last);
    say(word("undone"));
    return;
  }
  const item = received(await post(review("undo"), message));
  if (!item) {
    say(word("nothingToUndo"));
    return;
  }
  if (desk.item) desk.ready.unshift(desk.item);
  desk.ready = desk.ready.filter((one) => one.text !== item.text);
  show(item);
  say(word("undone"));
}

function toggle(place) {
  const label = desk.item?.labels[place];
  if (!label) return;
  label.checked = !label.checked;
  desk.cursor = place;
  redraw();
  if (desk.why) showWhy(place);
}

// ---- why

async function showWhy(place) {
  const { item, generation } = desk;
  const label = item.labels[place];
  if (!label) return;
  desk.cursor = place;
  desk.why = true;
  redraw();
  drawReasons(label, label.explanation);
  try {
    label.explanation ??= (await post("/v1/explain", { record: record(item.fields), label: label.id })).explanation;
  } catch (error) {
    if (generation === desk.generation) drawReasons(label, null, error.message);
    return;
  }
  if (generation !== desk.generation || !desk.why || desk.cursor !== place) return;
  drawText(item, label.explanation);
  drawReasons(label, label.explanation);
}

function hideWhy() {
  desk.why = false;
  $("why").hidden = true;
  drawText(desk.item);
}

function move(step) {
  const n = desk.item.labels.length;
  if (!n) return;
  desk.cursor = (desk.cursor + step + n) % n;
  redraw();
  if (desk.why) showWhy(desk.cursor);
}

// ---- search

let searching = new AbortController();

function openSearch() {
  if (!desk.item) return;
  $("search").hidden = false;
  $("query").value = "";
  drawMatches([], 0, pick);
  $("query").focus();
}

function closeSearch() {
  searching.abort();
  desk.matches = [];
  $("search").hidden = true;
  if (desk.item) $("text").focus({ preventScroll: true });
}

async function search() {
  searching.abort();
  searching = new AbortController();
  const { signal } = searching;
  const query = $("query").value.trim();
  if (!query) return drawMatches((desk.matches = []), 0, pick);
  try {
    const { labels } = await get(`/v1/labels?limit=8&q=${encodeURIComponent(query.slice(0, 200))}`, signal);
    desk.matches = labels;
    desk.chosen = 0;
    drawMatches(labels, 0, pick);
    say(labels.length ? "" : word("noMatch"));
  } catch (error) {
    if (error.name !== "AbortError") say(error instanceof Unreachable ? word("offline") : error.message);
  }
  return undefined;
}

function pick(place) {
  const match = desk.matches[place];
  if (!match) return;
  let at = desk.item.labels.findIndex((one) => one.id === match.id);
  if (at < 0) {
    desk.item.labels.push({ id: match.id, name: match.name, path: match.path, score: null, checked: true });
    at = desk.item.labels.length - 1;
  }
  desk.item.labels[at].checked = true;
  desk.cursor = at;
  closeSearch();
  redraw();
}

function searchKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") closeSearch();
  else if (event.key === "Enter") pick(desk.chosen);
  else if (step && desk.matches.length) {
    desk.chosen = (desk.chosen + step + desk.matches.length) % desk.matches.length;
    drawMatches(desk.matches, desk.chosen, pick);
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

// ---- keys

const KEYS = {
  Enter: () => file("accept"),
  "/": openSearch,
  "?": () => (desk.why ? hideWhy() : showWhy(desk.cursor)),
  u: undo,
  s: () => desk.store && file("skip"),
  n: showStart,
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  " ": () => toggle(desk.cursor),
};

function onKey(event) {
  const inField = event.target.closest("textarea, select, input:not([type=checkbox]), dialog");
  if (desk.item && !event.repeat && !["Shift", "Control", "Alt", "Meta", "AltGraph"].includes(event.key)) desk.item.keystrokes++;
  if (inField || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const isControl = event.target.closest("button, a, input, label.button");
  if (isControl && (event.key === "Enter" || event.key === " ") && event.target.type !== "checkbox") return;
  if (event.key === " " && event.target.type === "checkbox") return;
  const isDigit = /^[1-9]$/.test(event.key);
  const action = isDigit ? () => toggle(Number(event.key) - 1) : KEYS[event.key];
  if (!action || event.repeat || (!desk.item && event.key !== "u")) return;
  event.preventDefault();
  attempt(action);
}

// Runs an action; what the server refuses is said, not thrown.
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreachable)) throw error;
    say(error instanceof Unreachable ? word("offline") : error.message);
  }
}

// ---- start

async function fillQueues(chosen) {
  const { queues, person } = await get("/v1/review/queues");
  const names = queues.map((queue) => queue.name);
  $("queue").replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
  $("queue-choice").hidden = names.length < 2;
  return { names, person };
}

async function begin() {
  writeWords();
  whenATokenIsNeeded(() => ask("askToken", "askTokenLabel"));
  const { models } = await persistently(() => get("/v1/model"), () => say(word("offline")));
  [desk.model] = models;
  const asked = new URLSearchParams(location.search).get("queue");
  let names = [];
  try {
    const answer = await fillQueues(asked ?? kept("queue"));
    desk.store = true;
    names = answer.names;
    desk.person = answer.person || kept("person");
    $("person").hidden = Boolean(answer.person);
    $("figures").hidden = false;
  } catch (error) {
    if (!(error instanceof Refused) || ![403, 404].includes(error.status)) throw error;
  }
  drawHints(desk.store);
  for (const id of ["undo", "skip"]) $(id).hidden = !desk.store;
  if (!desk.store) return showStart();
  if (!desk.person) await askPerson();
  $("person").textContent = desk.person;
  outbox.flush();
  if (!names.length) return showStart();
  desk.queue = names.includes(asked) ? asked : names.includes(kept("queue")) ? kept("queue") : names[0];
  $("queue").value = desk.queue;
  return next();
}

document.addEventListener("keydown", onKey);
document.addEventListener("click", () => desk.item && desk.item.keystrokes++, true);
$("query").addEventListener("keydown", searchKey);
$("query").addEventListener("input", search);
$("accept").addEventListener("click", () => attempt(KEYS.Enter));
$("add").addEventListener("click", openSearch);
$("undo").addEventListener("click", () => attempt(undo));
$("skip").addEventListener("click", () => attempt(KEYS.s));
$("new").addEventListener("click", () => {
  if (desk.item) desk.ready.unshift(desk.item);
  showStart();
});
KEYS.n = () => $("new").click();
$("fetch").addEventListener("click", () => attempt(next));
$("person").addEventListener("click", () => attempt(askPerson));
$("paste").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("pasted").value.trim();
  if (text) attempt(() => bring({ text }));
});
$("pasted").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("paste").requestSubmit();
});
$("file").addEventListener("change", () => attempt(() => openFiles([...$("file").files])));
$("queue").addEventListener("change", () => {
  desk.queue = $("queue").value;
  keep("queue", desk.queue);
  Object.assign(desk, { item: null, ready: [], history: [] });
  attempt(next);
});
$("language").addEventListener("click", () => {
  otherLanguage();
  drawHints(desk.store);
  if (desk.item) redraw();
});
$("theme").addEventListener("click", () => say(word(`theme_${nextTheme()}`)));
document.addEventListener("paste", (event) => {
  if (event.target.closest("textarea, input, dialog")) return;
  const text = event.clipboardData.getData("text").trim();
  if (text) attempt(() => bring({ text }));
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const text = event.dataTransfer.getData("text");
  attempt(() => (event.dataTransfer.files.length ? openFiles([...event.dataTransfer.files]) : text && bring({ text })));
});
addEventListener("online", () => outbox.flush());
attempt(begin);
