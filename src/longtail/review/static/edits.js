// Changes of the model's labels, as the server makes and lists them.

import { get, post } from "./api.js";

// Makes a change: `action` is add, rename, merge, retire, restore or undo; the server answers with what it wrote.
export function change(action, facts, person) {
  return post("/v1/labels/edits", { action, ...facts, person });
}

// All changes so far, and whether whoever asks may make more.
export function history() {
  return get("/v1/labels/edits");
}

// Labels by any of their names, also those that are no longer in use.
export async function everyLabel(query, limit) {
  const { labels } = await get(`/v1/labels?in_use=false&limit=${limit}&q=${encodeURIComponent(query.slice(0, 200))}`);
  return labels;
}

// What stands between semicolons.
export function parts(text) {
  return text.split(";").map((part) => part.trim()).filter(Boolean);
}
