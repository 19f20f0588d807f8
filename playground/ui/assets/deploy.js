// What starts a side elsewhere: each snippet with a button that copies it.
function buildDeploy(box) {
  const details = make(box, 'details', 'deploy');
  details.hidden = true;
  return details;
}

async function copy(button, code, done) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // Only a page that came by https, or from this machine, has a clipboard.
    getSelection().selectAllChildren(code);
    if (!document.execCommand('copy')) return;
  }
  put(button, done);
}

function showDeploy(details, snippets, labels) {
  const text = JSON.stringify(snippets);
  // The same again: what a reader has opened or selected stays.
  if (details.dataset.shown === text) return;
  details.dataset.shown = text;
  details.hidden = !snippets.length;
  details.replaceChildren();
  make(details, 'summary', '', labels.deploy_label);
  for (const [name, snippet] of snippets) {
    const head = make(details, 'div', 'snippet');
    make(head, 'strong', '', name);
    const button = make(head, 'button', '', labels.copy_label);
    button.type = 'button';
    button.setAttribute('aria-label', `${labels.copy_label}: ${name}`);
    const code = make(make(details, 'pre'), 'code', '', snippet);
    button.addEventListener('click', () => copy(button, code, labels.copied_label));
  }
}
