// The desk: fetches texts, takes keys, files decisions.

import { Refused, Unreachable, get, persistently, post, upload, whenATokenIsNeeded } from "./api.js";
import { change, history, parts } from "./edits.js";
import { decision, recordFor, withLabels } from "./items.js";
import { Outbox, newKey } from "./outbox.js";
import { Search } from "./search.js";
import { $, ask, drawHints, drawLabels, drawReasons, drawText, submitted } from "./view.js";
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

const search = new Search({ add: addLabel, say, closed: () => desk.item && $("text").focus({ preventScroll: true }) });

function say(text) {
  $("status").textContent = text;
}

function review(path) {
  return `/v1/review/queues/${encodeURIComponent(desk.queue)}/${path}`;
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
  return answer.item && withLabels(answer.item);
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
    if (!atHand().includes(item.text)) desk.ready.push(item); // it was on its way already
    say("");
  }
  show(desk.ready.shift());
  return prefetch();
}

// Claims the text after this one, so that Enter shows it at once.
async function prefetch() {
  if (desk.ready.length) return;
  try {
    const item = received(await post(review("next"), { person: desk.person, without: atHand() }));
    if (!item) return;
    // Who was faster than this request has been given the same text by another one.
    const filed = desk.history.map((one) => one.text);
    if (![...atHand(), ...filed].includes(item.text)) desk.ready.push(item);
  } catch (error) {
    if (!(error instanceof Unreachable || error instanceof Refused)) throw error; // Enter will ask again
  }
}

function show(item) {
  Object.assign(desk, { item, cursor: 0, why: false, generation: desk.generation + 1 });
  item.shownAt = performance.now();
  item.keystrokes = 0;
  $("start").hidden = true;
  $("desk").hidden = false;
  $("why").hidden = true;
  search.close();
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
    const tag = async (more) => (await post("/v1/tag", { records: [recordFor(desk.model, fields)], k: 9, ...more })).results[0];
    const [tagged, filed] = [await tag({}), await tag({ threshold: calibrated ? "auto" : 0.5 })];
    const suggested = tagged.labels.map((one, place) => ({ ...one, checked: place < filed.labels.length }));
    answer = { progress: {}, item: { text: 0, fields, suggested, calibrated, blind: false, route: filed.route, cut: tagged.cut } };
  }
  const item = received(answer);
  if (!desk.store) $("progress").textContent = "";
  if (desk.item) desk.ready.unshift(desk.item);
  say("");
  show(item);
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
    outbox.add(review("decisions"), decision(item, kind, desk.person, newKey()));
    desk.history.push(item);
    desk.history.splice(0, desk.history.length - HISTORY);
  }
  const names = checked.map((one) => one.name).join(", ");
  say(kind === "skip" ? word("skipped") : desk.store ? `${word("accepted")(checked.length)}${names ? `: ${names}` : ""}` : `${names}: ${word("notKept")}`);
  const message = $("status").textContent;
  next().then(() => {
    if (!$("status").textContent) say(message);
  });
}

async function undo() {
  if (!desk.store) return;
  const message = { key: newKey(), person: desk.person };
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

function addLabel(match) {
  const { labels } = desk.item;
  let at = labels.findIndex((one) => one.id === match.id);
  if (at < 0) at = labels.push({ id: match.id, name: match.name, path: match.path, score: null, checked: true }) - 1;
  labels[at].checked = true;
  desk.cursor = at;
  redraw();
}

// Adds a label that the model does not have, with the text at hand as an example, if the person wants it.
async function makeLabel(name) {
  const { item } = desk;
  $("make-name").value = name;
  $("make-others").value = "";
  $("make-example").checked = true;
  if (!(await submitted("make"))) return;
  const examples = $("make-example").checked ? [recordFor(desk.model, item.fields)] : [];
  const facts = { name: $("make-name").value.trim(), alternatives: parts($("make-others").value), examples };
  say(word("loading"));
  const made = await change("add", facts, desk.person);
  say(word("didAdd")(made.name, examples.length));
  if (desk.item === item) addLabel({ id: made.label, name: made.name, path: [] });
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
    label.explanation ??= (await post("/v1/explain", { record: recordFor(desk.model, item.fields), label: label.id })).explanation;
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

// ---- keys

const KEYS = {
  Enter: () => file("accept"),
  "/": () => desk.item && search.open(),
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
  if ((await history()).may_edit) search.create = (name) => attempt(() => makeLabel(name));
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
$("accept").addEventListener("click", () => attempt(KEYS.Enter));
$("add").addEventListener("click", KEYS["/"]);
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
