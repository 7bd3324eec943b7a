// What scrolls can be reached with the keyboard, and captions of the side bar have a level.
addEventListener("load", () => {
  document.querySelectorAll("pre, .table-wrapper, .cell_output").forEach((e) => {
    if (e.scrollWidth > e.clientWidth) e.tabIndex = 0;
  });
  document.querySelectorAll("p.caption[role=heading]").forEach((e) => e.setAttribute("aria-level", "2"));
});
