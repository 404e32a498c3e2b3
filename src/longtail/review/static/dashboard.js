// The figures of a queue: progress, acceptance, effort, agreement, drift.

import { get, whenATokenIsNeeded } from "./api.js";
import { $, make } from "./view.js";
import { kept, otherLanguage, word, writeWords } from "./words.js";

let figures = null;

const percent = (share) => (share === null ? "–" : word("percent")(Math.round(1000 * share) / 10));
const number = (value) => (value === null ? "–" : (Math.round(100 * value) / 100).toString());

function tile(name, value) {
  return make("li", make("b", value), word(name));
}

function bar(share) {
  const drawn = make("span.bar", make("span"));
  drawn.firstChild.style.width = `${100 * (share ?? 0)}%`;
  return drawn;
}

function section(title, head, rows) {
  const cells = (kind, row) => make("tr", ...row.map((cell) => cellOf(kind, cell)));
  const table = make("table", make("thead", cells("th", head)), make("tbody", ...rows.map((row) => cells("td", row))));
  const frame = make("div.scroll", table);
  frame.tabIndex = 0;
  frame.role = "region";
  frame.ariaLabel = word(title);
  return make("section", make("h3", word(title)), frame);
}

function cellOf(kind, cell) {
  if (cell instanceof Node) return make("td.bars", cell);
  const element = make(cell ? kind : "td", cell); // a header without words is none
  if (cell && kind === "th") element.scope = "col";
  return element;
}

function draw() {
  const { progress, acceptance, unprompted, effort, agreement } = figures;
  const states = { texts: "texts", done: "done", claimed: "claimed", skipped: "skippedState", waiting: "waitingState" };
  $("tiles").replaceChildren(
    ...Object.entries(states).map(([state, name]) => tile(name, String(progress[state]))),
    tile("allCorrect", percent(acceptance.all_correct)),
    tile("keystrokes", number(effort.median_keystrokes)),
    tile("seconds", number(effort.median_seconds)),
    tile("alpha", number(agreement.alpha)),
  );
  const kept = [[word("overall"), acceptance], [word("unprompted"), unprompted]].filter(([, group]) => group.texts);
  const sections = [
    section("whatFiled", ["", word("texts"), word("allCorrect"), word("checkedFiled"), word("uncheckedFiled"), word("addedPerText")],
      kept.map(([name, group]) => [name, String(group.texts), ...shares(group)])),
    section("byRank", [word("rank"), word("shown"), word("filed"), ""],
      figures.by_rank.map((row) => [String(row.rank), String(row.shown), percent(row.filed), bar(row.filed)])),
    section("byScore", [word("score"), word("shown"), word("filed"), ""],
      figures.by_score.map((row) => [`${row.from}–${row.to}`, String(row.shown), percent(row.filed), bar(row.filed)])),
    section("byDay", [word("day"), word("texts"), word("allCorrect"), word("checkedFiled"), ""],
      figures.by_day.map((row) => [row.key, String(row.filed), percent(row.all_correct), percent(row.checked_filed), bar(row.checked_filed)])),
    ...[["byPerson", "person", figures.by_person], ["byModel", "model", figures.by_model]].map(([title, head, rows]) =>
      section(title, [word(head), word("texts"), word("allCorrect"), word("checkedFiled"), word("seconds"), word("keystrokes")],
        rows.map((row) => [row.key || "–", String(row.filed), percent(row.all_correct), percent(row.checked_filed),
          number(row.median_seconds), number(row.median_keystrokes)]))),
    section("agreement", [word("label"), word("texts"), word("alpha")], [
      [`${word("overall")} (${word("sameLabels")}: ${percent(agreement.same_labels)})`, String(agreement.texts), number(agreement.alpha)],
      ...agreement.labels.map((one) => [one.name, String(one.n_texts), number(one.alpha)]),
    ]),
  ];
  $("charts").replaceChildren(...sections);
}

function shares(group) {
  return [percent(group.all_correct), percent(group.checked_filed), percent(group.unchecked_filed), number(group.added_per_text)];
}

async function load() {
  figures = await get(`/v1/review/queues/${encodeURIComponent($("queue").value)}/stats`);
  draw();
}

async function begin() {
  writeWords();
  whenATokenIsNeeded(async () => prompt(word("askTokenLabel")) ?? "");
  const { queues } = await get("/v1/review/queues");
  const names = queues.map((queue) => queue.name);
  $("queue").replaceChildren(...names.map((name) => new Option(name, name, false, name === kept("queue"))));
  if (names.length) await load();
  else $("status").textContent = word("noQueues");
}

const reported = (action) => action().catch((error) => ($("status").textContent = error.message));
$("queue").addEventListener("change", () => reported(load));
$("language").addEventListener("click", () => {
  otherLanguage();
  if (figures) draw();
});
$("theme").addEventListener("click", () => ($("status").textContent = word(`theme_${nextTheme()}`)));
reported(begin);
