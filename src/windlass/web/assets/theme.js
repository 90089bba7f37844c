// The theme chosen for this browser; loaded before anything is drawn, so that no page appears in the other one first.
(() => {
  const KEY = "windlass-theme";
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // a browser that keeps nothing follows the system
    }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(read());
  document.addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    if (!choice) return;
    choice.value = root.dataset.theme || "system";
    choice.addEventListener("change", () => {
      apply(choice.value);
      try {
        if (choice.value === "system") localStorage.removeItem(KEY);
        else localStorage.setItem(KEY, choice.value);
      } catch {
        // It holds for this page only.
      }
    });
    addEventListener("storage", (event) => {
      if (event.key !== KEY) return;
      apply(event.newValue);
      choice.value = root.dataset.theme || "system";
    });
  });
})();
