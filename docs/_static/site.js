// What scrolls can be reached with the keyboard, and captions of the side bar have a level.
addEventListener("load", () => {
  document.querySelectorAll("pre, .table-wrapper, .cell_output, .math-wrapper, .math-wrapper > div").forEach((e) => {
    if (e.scrollWidth > e.clientWidth) e.tabIndex = 0;
  });
  // A label that is not what the reader sees cannot be spoken by the reader.
  document.querySelectorAll("summary[aria-label]").forEach((e) => e.removeAttribute("aria-label"));
  // Arguments of a function, one a line, are no definitions.
  document.querySelectorAll(".sig dl, .sig dl > dd").forEach((e) => e.setAttribute("role", "none"));
  document.querySelectorAll("p.caption[role=heading]").forEach((e) => e.setAttribute("aria-level", "2"));
});
