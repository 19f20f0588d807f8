// A field that is folded away, or on a tab not opened yet, is not in the page until its fold or tab is opened.
async function find({field, folds}) {
  for (const fold of folds) {
    const button = document.querySelector(fold);
    if (button && !button.matches('.open, [aria-selected=true]')) button.click();
    // What is inside comes into the page with the next painting.
    await new Promise((done) => setTimeout(done, 20));
  }
  for (let tries = 0; tries < 40; tries++) {
    const input = document.querySelector(field);
    if (input) return input;
    await new Promise((done) => setTimeout(done, 50));
  }
}
