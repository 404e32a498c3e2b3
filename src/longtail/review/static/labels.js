// The labels of the model: find, rename, merge, retire and restore them, add new ones, undo.

import { Refused, Unreachable, get, whenATokenIsNeeded } from "./api.js";
import { change, everyLabel, history, parts } from "./edits.js";
import { recordFor } from "./items.js";
import { Search } from "./search.js";
import { $, ask, drawKeys, make, shorten } from "./view.js";
import { keep, kept, otherLanguage, word, writeWords } from "./words.js";

const N_EXAMPLES = 8;

const page = {
  model: null,
  person: "",
  mayEdit: false,
  label: null, // the one that was chosen
  merging: null, // the label for whose merging another one is looked for
  queue: "", // where examples come from
  examples: new Map(), // texts that were checked, by their number
  asked: 0, // rises with every search for examples
};

function say(text) {
  $("status").textContent = text;
}

const search = new Search({
  find: (query) => everyLabel(query, 8),
  add: (label) => attempt(() => (page.merging ? merge(label) : choose(label))),
  say,
  closed: () => undefined,
});

// ---- one label

function find(merging = null) {
  page.merging = merging;
  search.open();
  writeQuestion();
}

function writeQuestion() {
  $("query-label").textContent = page.merging ? word("mergeInto")(page.merging.name) : word("findLabel");
}

function choose(label) {
  page.label = label;
  page.merging = null;
  search.open(false);
  writeQuestion();
  drawChosen();
  $("chosen").focus();
}

function drawChosen() {
  const { label, mayEdit } = page;
  $("chosen").hidden = !label;
  if (!label) return;
  $("chosen-name").textContent = label.name;
  const facts = [label.path.join(" › "), label.id === label.name ? "" : label.id, word("trainTexts")(label.n_train_texts), stateOf(label)];
  $("chosen-facts").textContent = facts.filter(Boolean).join(" · ");
  $("actions").hidden = !mayEdit;
  $("merge").hidden = Boolean(label.state);
  $("retire-words").textContent = word(label.state ? "restore" : "retire");
}

function stateOf(label) {
  if (!label.state) return "";
  const into = /^merged into '(.*)'$/.exec(label.state);
  return into ? word("mergedInto")(into[1]) : word("retired");
}

async function rename() {
  const name = await ask("rename", "newName", page.label.name, true);
  if (name && name !== page.label.name) await changed("rename", { label: page.label.id, name });
}

async function merge(into) {
  const label = page.merging;
  page.merging = null;
  await changed("merge", { label: label.id, into: into.id });
}

async function retire() {
  await changed(page.label.state ? "restore" : "retire", { label: page.label.id });
}

// Makes a change, says what was done, and shows the label as it is now.
async function changed(action, facts) {
  if (!page.person) await askPerson();
  say(word("loading"));
  const made = await change(action, facts, page.person);
  const past = await drawHistory();
  const last = past[past.length - 1];
  say(action === "undo" ? word("undone") : sentence(last));
  const id = made.label || page.label?.id;
  const [now] = id ? (await everyLabel(last?.name || id, 50)).filter((one) => one.id === id) : [];
  if (now) choose(now);
  else if (page.label && action === "undo") await again();
  return made;
}

// Shows the chosen label as it is now; an undo may have changed it, or have taken it away.
async function again() {
  const { id, name } = page.label;
  const [now] = (await everyLabel(name, 50)).filter((one) => one.id === id);
  page.label = now ?? null;
  drawChosen();
}

async function askPerson() {
  do page.person = await ask("askName", "askNameLabel", page.person);
  while (!page.person);
  keep("person", page.person);
  showPerson(page.person);
}

function showPerson(name) {
  $("person").textContent = name;
  $("person").hidden = !name;
}

// ---- what was changed

// A change in words.
function sentence(edit) {
  const { action, name, label } = edit;
  if (action === "add") return word("didAdd")(name, edit.n_examples);
  if (action === "rename") return word("didRename")(edit.old_name || label, name);
  if (action === "merge") return word("didMerge")(name || label, edit.into_name || edit.into);
  return action === "undo" ? word("didUndo") : word(action === "retire" ? "didRetire" : "didRestore")(name || label);
}

async function drawHistory() {
  const answer = await history();
  page.mayEdit = answer.may_edit;
  if (answer.person) {
    page.person = answer.person;
    showPerson("");
  }
  const rows = [...answer.edits].reverse().map((edit) => {
    const when = new Date(edit.time);
    const about = [edit.person, Number.isNaN(when.valueOf()) ? "" : when.toLocaleString(document.documentElement.lang)];
    const row = make("li", make(edit.undone ? "s" : "span", sentence(edit)));
    row.append(make("span.path", [...about.filter(Boolean), edit.undone ? word("wasUndone") : ""].filter(Boolean).join(" · ")));
    return row;
  });
  $("history").replaceChildren(...(rows.length ? rows : [make("li", word("noHistory"))]));
  $("may-not").hidden = page.mayEdit;
  $("making").hidden = !page.mayEdit;
  $("undo").hidden = !page.mayEdit || !answer.edits.some((edit) => edit.action !== "undo" && !edit.undone);
  drawKeys(KEY_HINTS.filter(([key]) => page.mayEdit || key === "/"));
  drawChosen();
  return answer.edits;
}

// ---- a new label

async function fillBroader() {
  const query = $("new-broader").value.trim();
  const labels = query ? await everyLabel(query, 8) : [];
  $("broader-names").replaceChildren(...labels.filter((one) => !one.state).map((one) => new Option(one.id, one.name)));
}

async function findExamples() {
  if (!page.queue) return;
  const number = ++page.asked;
  const query = $("example-query").value.trim();
  const path = `/v1/review/queues/${encodeURIComponent(page.queue)}/texts`;
  const found = query ? (await get(`${path}?limit=${N_EXAMPLES}&q=${encodeURIComponent(query.slice(0, 200))}`)).texts : [];
  if (number !== page.asked) return; // another search was faster
  const others = found.filter((one) => !page.examples.has(one.text));
  $("examples").replaceChildren(...[...page.examples.values(), ...others].map(exampleRow));
  say(query && !others.length ? word("noExample") : "");
}

function exampleRow(example) {
  const box = make("input");
  box.type = "checkbox";
  box.id = `example-${example.text}`;
  box.checked = page.examples.has(example.text);
  box.addEventListener("change", () => {
    if (box.checked) page.examples.set(example.text, example);
    else page.examples.delete(example.text);
  });
  const { title = "", text = "" } = example.fields;
  const name = make("label", shorten([title, text].filter(Boolean).join(" – "), 160));
  name.htmlFor = box.id;
  return make("li", box, name);
}

async function addLabel() {
  const pasted = $("pasted-examples").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const chosen = [...page.examples.values()].map((one) => fieldsRead(one.fields));
  const broader = $("new-broader").value.trim();
  await changed("add", {
    name: $("new-name").value.trim(),
    alternatives: parts($("new-others").value),
    parents: broader ? [broader] : [],
    examples: [...chosen, ...pasted.map((text) => fieldsRead({ text }))],
  });
  page.examples.clear();
  $("new-label").reset();
  $("examples").replaceChildren();
}

// The fields of a text that the model reads.
function fieldsRead(fields) {
  const names = new Set([...page.model.fields, ...page.model.optional_fields]);
  return Object.fromEntries(Object.entries(recordFor(page.model, fields)).filter(([name]) => names.has(name)));
}

// ---- keys

const KEY_HINTS = [["/", "hintFind"], ["a", "hintNewLabel"], ["r", "hintRename"], ["m", "hintMerge"], ["x", "hintRetire"], ["u", "hintUndo"]];
const KEYS = { "/": () => find(), a: () => $("new-name").focus(), r: () => $("rename"), m: () => $("merge"), x: () => $("retire"), u: () => $("undo") };

function onKey(event) {
  if (event.key === "Escape" && page.merging) find();
  const inField = event.target.closest("textarea, select, input:not([type=checkbox]), dialog");
  if (inField || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  const action = KEYS[event.key];
  if (!action || (event.key !== "/" && !page.mayEdit)) return;
  event.preventDefault();
  const button = action();
  if (button instanceof HTMLButtonElement && button.offsetParent) button.click(); // only what can be seen can be pressed
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

async function begin() {
  writeWords();
  find();
  whenATokenIsNeeded(() => ask("askToken", "askTokenLabel"));
  page.person = kept("person");
  showPerson(page.person);
  [page.model] = (await get("/v1/model")).models;
  await drawHistory();
  try {
    const { queues } = await get("/v1/review/queues");
    const names = queues.map((queue) => queue.name);
    page.queue = names.includes(kept("queue")) ? kept("queue") : names[0] ?? "";
  } catch (error) {
    if (!(error instanceof Refused)) throw error; // no review store, or not the role: examples can still be pasted
  }
  $("of-queue").hidden = !page.queue;
}

document.addEventListener("keydown", onKey);
$("rename").addEventListener("click", () => attempt(rename));
$("merge").addEventListener("click", () => find(page.label));
$("retire").addEventListener("click", () => attempt(retire));
$("undo").addEventListener("click", () => attempt(() => changed("undo", {})));
$("person").addEventListener("click", () => attempt(askPerson));
$("new-broader").addEventListener("input", () => attempt(fillBroader));
$("example-query").addEventListener("input", () => attempt(findExamples));
$("example-query").addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
$("new-name").addEventListener("change", () => {
  if ($("example-query").value.trim()) return;
  $("example-query").value = $("new-name").value.trim();
  attempt(findExamples);
});
$("new-label").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(addLabel);
});
$("language").addEventListener("click", () => {
  otherLanguage();
  writeQuestion();
  attempt(drawHistory);
});
$("theme").addEventListener("click", () => say(word(`theme_${nextTheme()}`)));
attempt(begin);
