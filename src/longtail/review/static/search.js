// Finds labels by their names and hands the chosen one over, or the name of a new one.

import { Unreachable, get } from "./api.js";
import { $, drawMatches } from "./view.js";
import { word } from "./words.js";

export class Search {
  // `find` answers a query with labels, `add` gets the label that was chosen, `say` what is to be told, `closed` is
  // called when the search ends. With `create`, a name that no label has may be chosen, too.
  constructor({ find = labelsInUse, add, say, closed, create = null }) {
    Object.assign(this, { find, add, say, closed, create, matches: [], chosen: 0, asking: new AbortController() });
    $("query").addEventListener("keydown", (event) => this.key(event));
    $("query").addEventListener("input", () => this.ask());
  }

  open(focused = true) {
    $("search").hidden = false;
    $("query").value = "";
    this.draw([]);
    if (focused) $("query").focus();
  }

  close() {
    this.asking.abort();
    this.matches = [];
    $("search").hidden = true;
    this.closed();
  }

  draw(matches, chosen = 0) {
    Object.assign(this, { matches, chosen });
    drawMatches(matches, chosen, (place) => this.pick(place));
  }

  async ask() {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const query = $("query").value.trim();
    if (!query) return this.draw([]);
    try {
      const labels = await this.find(query, signal);
      if (signal.aborted) return undefined;
      const isKnown = labels.some((one) => one.name.toLowerCase() === query.toLowerCase());
      this.draw(this.create && !isKnown ? [...labels, { isNew: true, name: query, path: [] }] : labels);
      this.say(labels.length ? "" : word("noMatch"));
    } catch (error) {
      if (error.name !== "AbortError") this.say(error instanceof Unreachable ? word("offline") : error.message);
    }
    return undefined;
  }

  pick(place) {
    const match = this.matches[place];
    if (!match) return;
    this.close();
    if (match.isNew) this.create(match.name);
    else this.add(match);
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const n = this.matches.length;
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter") this.pick(this.chosen);
    else if (step && n) this.draw(this.matches, (this.chosen + step + n) % n);
    else return;
    event.preventDefault();
  }
}

async function labelsInUse(query, signal) {
  return (await get(`/v1/labels?limit=8&q=${encodeURIComponent(query.slice(0, 200))}`, signal)).labels;
}
