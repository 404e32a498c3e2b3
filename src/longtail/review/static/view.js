// Draws a text with its labels, the reasons for one of them, and what fits a search.

import { word } from "./words.js";

const WEAKEST = 0.08; // words with less than this share of the strongest one's weight are not marked
const MOST_MARKED = 12;

export const $ = (id) => document.getElementById(id);

// Makes an element with text or children; names of classes stand behind dots: make("span.key", "1").
export function make(kind, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Asks for one line in a dialog, and returns it; if the dialog is left with Escape, `value`, or nothing where `mayLeave`.
export function ask(title, label, value = "", mayLeave = false) {
  $("ask-title").textContent = word(title);
  $("ask-label").textContent = word(label);
  $("answer").value = value;
  $("answer").select();
  return submitted("ask").then((isOk) => (mayLeave && !isOk ? "" : $("answer").value.trim() || value));
}

// Opens a dialog, and returns whether it was left by its button or Enter, and not by Escape.
export function submitted(dialog) {
  $(dialog).returnValue = "";
  $(dialog).showModal();
  return new Promise((resolve) => {
    $(dialog).addEventListener("close", () => resolve($(dialog).returnValue === "ok"), { once: true });
  });
}

export function drawText(item, explanation) {
  const fields = { ...item.fields, ...(explanation ? explanation.fields : {}) };
  const marks = explanation ? marksOf(explanation) : {};
  const { title, text, id, ...others } = fields;
  $("text-title").replaceChildren(...(title ? marked(title, marks.title) : [id || word("untitled")]));
  const paragraphs = [make("div.body", ...marked(text || "", marks.text))];
  for (const [name, value] of Object.entries(others)) {
    if (value) paragraphs.push(make("p.field", make("b", `${name}: `), ...marked(value, marks[name])));
  }
  $("fields").replaceChildren(...paragraphs);
}

export function drawLabels(item, cursor, on) {
  const rows = item.labels.map((label, place) => labelRow(item, label, place, place === cursor, on));
  $("list").replaceChildren(...rows);
  const notes = [];
  if (item.blind) notes.push(word("blind"));
  else if (!item.labels.length) notes.push(word("nothing"));
  if (item.route) notes.push(word("route")[item.route]);
  if (item.cut) notes.push(word("cut"));
  if (!item.calibrated && !item.blind) notes.push(word("uncalibrated"));
  $("about-labels").textContent = notes.join(" ");
}

function labelRow(item, label, place, isCursor, on) {
  const box = make("input");
  box.type = "checkbox";
  box.id = `label-${place}`;
  box.checked = label.checked;
  box.addEventListener("change", () => on.toggle(place));
  const key = make("kbd.key", place < 9 ? String(place + 1) : "");
  key.ariaHidden = "true";
  const name = make("label.name", make("span.label", label.name));
  name.htmlFor = box.id;
  if (label.path.length) name.append(make("span.path", label.path.join(" › ")));
  const score = make("span.score", scoreText(item, label));
  const bar = make("span.bar", make("span"));
  bar.ariaHidden = "true";
  bar.firstChild.style.width = `${100 * Math.max(0, Math.min(1, label.score ?? 0))}%`;
  const why = make("button.why", "?");
  why.type = "button";
  why.ariaLabel = word("whyButton")(label.name);
  why.addEventListener("click", () => on.why(place));
  const row = make("li", key, box, name, bar, score, why);
  row.classList.toggle("checked", label.checked);
  row.classList.toggle("cursor", isCursor);
  if (isCursor) row.ariaCurrent = "true";
  return row;
}

function scoreText(item, label) {
  if (label.score === null) return word("added");
  return item.calibrated ? word("percent")(Math.round(100 * label.score)) : label.score.toFixed(2);
}

// Draws why a label was suggested, or that nothing is known yet.
export function drawReasons(label, explanation, failure) {
  $("why").hidden = false;
  $("why-title").textContent = word("why")(label.name);
  if (!explanation) {
    $("reasons").replaceChildren(make("p", failure || word("loading")));
    return;
  }
  const largest = Math.max(...explanation.words.map((one) => Math.abs(one.weight)), 1e-9);
  const words = (sign) =>
    explanation.words
      .filter((one) => sign * one.weight >= WEAKEST * largest)
      .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
      .slice(0, 8).map((one) => one.word);
  const reasons = [];
  for (const [title, list] of [["speaksFor", words(1)], ["speaksAgainst", words(-1)]]) {
    if (list.length) reasons.push(make("p", make("b", `${word(title)}: `), list.join(", ")));
  }
  if (!reasons.length) reasons.push(make("p", word("noReason")));
  if (explanation.note) reasons.push(make("p.note", explanation.note));
  const nearest = explanation.nearest.filter((one) => one.text);
  if (nearest.length) {
    reasons.push(make("h4", word("nearest")));
    const rows = nearest.map((one) =>
      make("li", make("span", shorten(one.text, 240)), make("span.note", ` ${word("similar")(Math.round(100 * one.similarity))}`)),
    );
    reasons.push(make("ul.nearest", ...rows));
  }
  $("reasons").replaceChildren(...reasons);
}

export function drawMatches(matches, chosen, pick) {
  const rows = matches.map((match, place) => {
    const row = make("li", make("span.label", match.isNew ? word("newLabel")(match.name) : match.name));
    if (match.state) row.append(make("span.path", word("notInUse")));
    if (match.matched && match.matched !== match.name) row.append(make("span.path", `= ${match.matched}`));
    if (match.path.length) row.append(make("span.path", match.path.join(" › ")));
    row.role = "option";
    row.id = `match-${place}`;
    row.ariaSelected = String(place === chosen);
    row.addEventListener("click", () => pick(place));
    return row;
  });
  $("matches").replaceChildren(...rows);
  $("query").ariaExpanded = String(matches.length > 0);
  if (matches.length) $("query").setAttribute("aria-activedescendant", `match-${chosen}`);
  else $("query").removeAttribute("aria-activedescendant");
}

export function drawHints(hasStore) {
  const hints = [["↵", "hintAccept"], ["1–9", "hintToggle"], ["↑↓", "hintMove"], ["/", "hintAdd"], ["?", "hintWhy"], ["n", "hintNew"]];
  if (hasStore) hints.splice(5, 0, ["u", "hintUndo"], ["s", "hintSkip"]);
  drawKeys(hints);
}

// Draws keys and what they do.
export function drawKeys(hints) {
  $("hints").replaceChildren(...hints.map(([key, name]) => make("span", make("kbd", key), ` ${word(name)}`)));
}

// Spans with weights by field: the server counts characters as Python does, one per code point.
function marksOf(explanation) {
  const largest = Math.max(...explanation.words.map((one) => Math.abs(one.weight)), 1e-9);
  const marks = {};
  const strong = [...explanation.words]
    .sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight))
    .filter((one) => Math.abs(one.weight) >= WEAKEST * largest)
    .slice(0, MOST_MARKED);
  for (const { weight, spans } of strong) {
    for (const { field, start, end } of spans) (marks[field] ??= []).push({ start, end, weight: weight / largest });
  }
  for (const list of Object.values(marks)) list.sort((a, b) => a.start - b.start);
  return marks;
}

// A text as nodes, with its spans marked: the stronger the word, the stronger the mark.
function marked(text, spans = []) {
  if (!spans.length) return [text];
  const characters = Array.from(text);
  const nodes = [];
  let at = 0;
  for (const { start, end, weight } of spans) {
    if (start < at) continue;
    nodes.push(characters.slice(at, start).join(""));
    const strength = Math.max(1, Math.ceil(4 * Math.abs(weight)));
    nodes.push(make(`mark.${weight > 0 ? "for" : "against"}.strength${strength}`, characters.slice(start, end).join("")));
    at = end;
  }
  nodes.push(characters.slice(at).join(""));
  return nodes;
}

export function shorten(text, length) {
  const characters = Array.from(text.replace(/\s+/g, " "));
  return characters.length > length ? `${characters.slice(0, length).join("")} …` : characters.join("");
}
