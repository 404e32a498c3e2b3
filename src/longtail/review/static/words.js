// All words of the page, in English and German.

const WORDS = {
  en: {
    queue: "Queue", settings: "Settings", newText: "New text", figures: "Figures", theme: "Theme", desk: "To the desk",
    startTitle: "A text", pasteLabel: "Paste a text, or drop a file anywhere (txt, pdf, docx, epub, html)",
    suggest: "Suggest labels", openFile: "Open a file", fetchNext: "Next text of the queue",
    labels: "Labels", searchLabel: "Find a label by any of its names", matches: "Labels that fit",
    accept: "Accept", add: "Add a label", undo: "Undo", skip: "Skip", keys: "Keys", ok: "OK",
    hintAccept: "accept what is checked", hintToggle: "check or uncheck", hintAdd: "add a label", hintWhy: "why this label",
    hintUndo: "undo", hintSkip: "skip", hintMove: "choose a label", hintNew: "new text",
    untitled: "Text", why: (name) => `Why ${name}?`, whyButton: (name) => `Why ${name}?`,
    added: "added", percent: (n) => `${n} %`,
    blind: "Without suggestions: which labels fit is yours alone to say. Add them with /.",
    cut: "The model has read only the beginning of this text.",
    route: { automatic: "Nearly all labels of this text are likely to be checked.", review: "Please check: labels may be missing.", hard: "The model is unsure: look closely." },
    uncalibrated: "Scores of this model are no probabilities.",
    nothing: "The model suggests nothing. Add labels with /.",
    progress: (done, all) => `${done} of ${all} done`,
    accepted: (n) => (n === 1 ? "1 label accepted" : `${n} labels accepted`), skipped: "Skipped", undone: "Undone",
    nothingToUndo: "There is nothing to undo", empty: "Nothing is left in this queue.",
    notKept: "accepted, but kept nowhere: the server has no review store",
    waiting: (n) => `No connection: ${n} ${n === 1 ? "decision waits" : "decisions wait"} and will be sent again`,
    sent: "All decisions are kept", loading: "Loading …", offline: "No connection; trying again …",
    refused: (why) => `A decision was refused: ${why}`,
    noMatch: "No label fits", askName: "Your name", askNameLabel: "Decisions are kept under this name",
    askToken: "Your token", askTokenLabel: "The server asks for a token; whoever runs it has one for you",
    reading: (name) => `Reading ${name} …`, speaksFor: "Words that speak for it", speaksAgainst: "Words that speak against it",
    nearest: "Nearest texts with this label", noReason: "No word of the text stands out for this label.", similar: (n) => `${n} % alike`,
    theme_auto: "Theme: as the system", theme_light: "Theme: light", theme_dark: "Theme: dark",
    figuresTitle: "Figures", texts: "texts", done: "done", claimed: "at work", skippedState: "skipped", waitingState: "waiting",
    allCorrect: "all correct", checkedFiled: "of checked, filed", uncheckedFiled: "of unchecked, filed", addedPerText: "added per text",
    seconds: "seconds per text", keystrokes: "keystrokes per text", byRank: "Acceptance by rank", byScore: "Acceptance by score",
    byDay: "Acceptance over time", byPerson: "By person", byModel: "By model", agreement: "Agreement", alpha: "alpha",
    sameLabels: "same labels", label: "label", rank: "rank", score: "score", shown: "shown", filed: "filed", day: "day",
    person: "person", model: "model", overall: "All texts", unprompted: "Without suggestions", whatFiled: "What people filed", noQueues: "There is no queue yet.",
    vocabulary: "Vocabulary", findTitle: "A label", findLabel: "Find a label by any of its names", name: "Name",
    rename: "Rename", merge: "Merge into another", retire: "Retire", restore: "Restore", newName: "The new name",
    mergeInto: (name) => `Into which label is ${name} merged?`, mergedInto: (label) => `merged into ${label}`, retired: "retired",
    notInUse: "no longer in use", trainTexts: (n) => (n === 1 ? "1 training text" : `${n} training texts`),
    history: "What was changed", noHistory: "No label was changed since the model was trained.", wasUndone: "undone",
    mayNotEdit: "You may look. To change labels, the role admin is needed.",
    newTitle: "A new label", otherNames: "Other names, with semicolons between them", broader: "Broader label (may be empty)",
    examples: "Examples", aboutExamples: "The model suggests a new label where texts resemble its examples or have its name. Five examples are enough; none are needed.",
    exampleQuery: "Find texts of the queue by their words", pastedExamples: "Or paste texts, one per line", addLabel: "Add the label",
    isExample: "This text is an example", newLabel: (name) => `+ New label: ${name}`, noExample: "No other text of the queue has these words",
    didAdd: (name, n) => `Added ${name}, ${n === 1 ? "1 example" : `${n} examples`}`, didRename: (label, name) => `Renamed ${label} to ${name}`,
    didMerge: (name, into) => `Merged ${name} into ${into}`, didRetire: (name) => `Retired ${name}`,
    didRestore: (name) => `Restored ${name}`, didUndo: "Undid the change before",
    hintFind: "find a label", hintNewLabel: "new label", hintRename: "rename", hintMerge: "merge", hintRetire: "retire, restore",
  },
  de: {
    queue: "Liste", settings: "Einstellungen", newText: "Neuer Text", figures: "Zahlen", theme: "Farben", desk: "Zum Pult",
    startTitle: "Ein Text", pasteLabel: "Text einfügen oder eine Datei irgendwo ablegen (txt, pdf, docx, epub, html)",
    suggest: "Schlagwörter vorschlagen", openFile: "Datei öffnen", fetchNext: "Nächster Text der Liste",
    labels: "Schlagwörter", searchLabel: "Schlagwort nach einem seiner Namen suchen", matches: "Passende Schlagwörter",
    accept: "Übernehmen", add: "Schlagwort ergänzen", undo: "Zurück", skip: "Überspringen", keys: "Tasten", ok: "OK",
    hintAccept: "Angekreuztes übernehmen", hintToggle: "an- oder abwählen", hintAdd: "Schlagwort ergänzen",
    hintWhy: "warum dieses Schlagwort", hintUndo: "zurück", hintSkip: "überspringen", hintMove: "Schlagwort wählen", hintNew: "neuer Text",
    untitled: "Text", why: (name) => `Warum ${name}?`, whyButton: (name) => `Warum ${name}?`,
    added: "ergänzt", percent: (n) => `${n} %`,
    blind: "Ohne Vorschläge: Welche Schlagwörter passen, sagen Sie allein. Ergänzen Sie sie mit /.",
    cut: "Das Modell hat nur den Anfang dieses Textes gelesen.",
    route: { automatic: "Wahrscheinlich sind fast alle Schlagwörter dieses Textes angekreuzt.", review: "Bitte prüfen: Es können Schlagwörter fehlen.", hard: "Das Modell ist unsicher: genau hinsehen." },
    uncalibrated: "Die Werte dieses Modells sind keine Wahrscheinlichkeiten.",
    nothing: "Das Modell schlägt nichts vor. Ergänzen Sie Schlagwörter mit /.",
    progress: (done, all) => `${done} von ${all} erledigt`,
    accepted: (n) => (n === 1 ? "1 Schlagwort übernommen" : `${n} Schlagwörter übernommen`), skipped: "Übersprungen",
    undone: "Zurückgenommen", nothingToUndo: "Es gibt nichts zurückzunehmen", empty: "In dieser Liste ist nichts mehr offen.",
    notKept: "übernommen, aber nirgends gespeichert: der Server hat keine Ablage für Entscheidungen",
    waiting: (n) => `Keine Verbindung: ${n} ${n === 1 ? "Entscheidung wartet" : "Entscheidungen warten"} und werden erneut gesendet`,
    sent: "Alle Entscheidungen sind gespeichert", loading: "Lädt …", offline: "Keine Verbindung; neuer Versuch …",
    refused: (why) => `Eine Entscheidung wurde abgelehnt: ${why}`,
    noMatch: "Kein Schlagwort passt", askName: "Ihr Name", askNameLabel: "Unter diesem Namen werden Entscheidungen gespeichert",
    askToken: "Ihr Zugangscode", askTokenLabel: "Der Server verlangt einen Code; wer ihn betreibt, hat einen für Sie",
    reading: (name) => `Liest ${name} …`, speaksFor: "Wörter, die dafür sprechen", speaksAgainst: "Wörter, die dagegen sprechen",
    nearest: "Ähnlichste Texte mit diesem Schlagwort", noReason: "Kein Wort des Textes hebt sich für dieses Schlagwort ab.",
    similar: (n) => `${n} % ähnlich`,
    theme_auto: "Farben: wie das System", theme_light: "Farben: hell", theme_dark: "Farben: dunkel",
    figuresTitle: "Zahlen", texts: "Texte", done: "erledigt", claimed: "in Arbeit", skippedState: "übersprungen", waitingState: "offen",
    allCorrect: "ganz richtig", checkedFiled: "von Angekreuzten übernommen", uncheckedFiled: "von nicht Angekreuzten übernommen",
    addedPerText: "ergänzt je Text", seconds: "Sekunden je Text", keystrokes: "Tasten je Text", byRank: "Übernommen nach Rang",
    byScore: "Übernommen nach Wert", byDay: "Übernommen im Lauf der Zeit", byPerson: "Nach Person", byModel: "Nach Modell",
    agreement: "Übereinstimmung", alpha: "Alpha", sameLabels: "gleiche Schlagwörter", label: "Schlagwort", rank: "Rang", score: "Wert",
    shown: "gezeigt", filed: "übernommen", day: "Tag", person: "Person", model: "Modell", overall: "Alle Texte",
    unprompted: "Ohne Vorschläge", whatFiled: "Was übernommen wurde", noQueues: "Es gibt noch keine Liste.",
    vocabulary: "Vokabular", findTitle: "Ein Schlagwort", findLabel: "Schlagwort nach einem seiner Namen suchen", name: "Name",
    rename: "Umbenennen", merge: "Mit anderem zusammenlegen", retire: "Stilllegen", restore: "Wieder verwenden", newName: "Der neue Name",
    mergeInto: (name) => `Mit welchem Schlagwort wird ${name} zusammengelegt?`, mergedInto: (label) => `zusammengelegt mit ${label}`,
    retired: "stillgelegt", notInUse: "nicht mehr verwendet", trainTexts: (n) => (n === 1 ? "1 Trainingstext" : `${n} Trainingstexte`),
    history: "Was geändert wurde", noHistory: "Seit dem Training wurde kein Schlagwort geändert.", wasUndone: "zurückgenommen",
    mayNotEdit: "Sie können nachsehen. Ändern darf Schlagwörter, wer die Rolle admin hat.",
    newTitle: "Ein neues Schlagwort", otherNames: "Andere Namen, mit Strichpunkten dazwischen", broader: "Oberbegriff (kann leer bleiben)",
    examples: "Beispiele", aboutExamples: "Das Modell schlägt ein neues Schlagwort vor, wo Texte seinen Beispielen ähneln oder seinen Namen enthalten. Fünf Beispiele genügen; es geht auch ohne.",
    exampleQuery: "Texte der Liste nach Wörtern suchen", pastedExamples: "Oder Texte einfügen, einen je Zeile", addLabel: "Schlagwort hinzufügen",
    isExample: "Dieser Text ist ein Beispiel", newLabel: (name) => `+ Neues Schlagwort: ${name}`, noExample: "Kein weiterer Text der Liste hat diese Wörter",
    didAdd: (name, n) => `${name} hinzugefügt, ${n === 1 ? "1 Beispiel" : `${n} Beispiele`}`, didRename: (label, name) => `${label} in ${name} umbenannt`,
    didMerge: (name, into) => `${name} mit ${into} zusammengelegt`, didRetire: (name) => `${name} stillgelegt`,
    didRestore: (name) => `${name} wird wieder verwendet`, didUndo: "Die Änderung davor zurückgenommen",
    hintFind: "Schlagwort suchen", hintNewLabel: "neues Schlagwort", hintRename: "umbenennen", hintMerge: "zusammenlegen", hintRetire: "stilllegen, wieder verwenden",
  },
};

export function kept(name) {
  try {
    return localStorage.getItem(`longtail.${name}`) || "";
  } catch {
    return "";
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(`longtail.${name}`, value);
  } catch {
    // private windows keep nothing
  }
}

let language = kept("language") || (navigator.language.startsWith("de") ? "de" : "en");

// The word (or the function that makes it) that is called `name`.
export function word(name) {
  return WORDS[language][name];
}

// Writes all words that the page holds, in the language of the page.
export function writeWords(root = document) {
  document.documentElement.lang = language;
  for (const element of root.querySelectorAll("[data-words]")) element.textContent = word(element.dataset.words);
  for (const element of root.querySelectorAll("[data-words-label]")) element.ariaLabel = word(element.dataset.wordsLabel);
  const other = document.getElementById("language");
  other.lang = language === "en" ? "de" : "en";
  other.textContent = language === "en" ? "Deutsch" : "English";
}

export function otherLanguage() {
  language = language === "en" ? "de" : "en";
  keep("language", language);
  writeWords();
}
