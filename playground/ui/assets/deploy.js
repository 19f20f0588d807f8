// What starts a side elsewhere comes as HTML: shown as it is, and the clicks on its buttons are caught here.
async function copy(button, code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // Only a page that came by https, or from this machine, has a clipboard.
    getSelection().selectAllChildren(code);
    if (!document.execCommand('copy')) return;
  }
  put(button, button.dataset.copied);
}

element.addEventListener('click', (event) => {
  const button = event.target.closest('.snippet button');
  if (button) copy(button, button.parentElement.nextElementSibling.firstElementChild);
});

function showDeploy(box, html) {
  // The same again: what a reader has opened or selected stays.
  if (box.dataset.shown === html) return;
  box.dataset.shown = html;
  box.innerHTML = html;
}
