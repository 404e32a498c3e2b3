// Texts as the desk holds them.

// Adds the labels of a text as they will be filed: what is checked, or what the person had filed and took back.
export function withLabels(item) {
  const filed = item.filed && new Set(item.filed);
  item.labels = item.suggested.map((one) => ({ ...one, checked: filed ? filed.has(one.id) : one.checked }));
  const shown = new Set(item.suggested.map((one) => one.id));
  for (const id of item.filed ?? []) {
    if (!shown.has(id)) item.labels.push({ id, name: item.filed_names?.[id] ?? id, path: [], score: null, checked: true });
  }
  return item;
}

// The fields of a text as a model reads them: those that it needs and the text lacks are empty.
export function recordFor(model, fields) {
  return { ...Object.fromEntries(model.fields.map((name) => [name, ""])), ...fields };
}

// What is filed for a text.
export function decision(item, kind, person, key) {
  const checked = item.labels.filter((one) => one.checked);
  const shown = new Set(item.suggested.map((one) => one.id));
  return {
    key,
    kind,
    text: item.text,
    person,
    labels: kind === "accept" ? checked.map((one) => one.id) : [],
    names: Object.fromEntries(checked.filter((one) => !shown.has(one.id)).map((one) => [one.id, one.name])),
    suggested: item.suggested.map(({ id, name, score, checked }) => ({ id, name, score, checked })),
    revision: item.revision,
    threshold: item.threshold,
    seconds: Math.round(performance.now() - item.shownAt) / 1000,
    keystrokes: item.keystrokes,
  };
}
