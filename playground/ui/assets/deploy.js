// The snippets that start a side elsewhere come as HTML. Clicks on their buttons are handled here.
async function copy(button, code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // The clipboard is available only to a page that came by https, or from this machine.
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
  // Unchanged HTML is kept, so that what the reader has opened or selected stays.
  if (box.dataset.html === html) return;
  box.dataset.html = html;
  box.innerHTML = html;
}
