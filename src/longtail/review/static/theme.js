// Applies the theme that was chosen before the page is drawn; "auto" is what the system asks for.
const THEMES = ["auto", "light", "dark"];

function storedTheme() {
  try {
    return localStorage.getItem("longtail.theme") || "auto";
  } catch {
    return "auto";
  }
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(storedTheme()) + 1) % THEMES.length];
  try {
    localStorage.setItem("longtail.theme", theme);
  } catch {
    // private windows keep nothing
  }
  applyTheme(theme);
  return theme;
}

applyTheme(storedTheme());
