// Before Gradio starts: the language of this browser's visitor, as its page was asked for (`?lang=zh-CN`) or was last
// shown. The server reads the cookie (ui/shared/labels.py), Gradio the browser's language.
(() => {
  const offered = ['en', 'zh-CN'];
  const query = new URLSearchParams(location.search).get('lang');
  // In a frame of another site a browser keeps only cookies of its own kind.
  const framed = location.protocol === 'https:' ? 'SameSite=None; Secure; Partitioned' : 'SameSite=Lax';
  if (offered.includes(query)) document.cookie = `playground-language=${query}; path=/; ${framed}`;
  const kept = offered.includes(query) ? query : document.cookie.match(/(?:^|; )playground-language=(en|zh-CN)/)?.[1];
  if (kept) Object.defineProperty(navigator, 'language', {get: () => kept});
  document.documentElement.lang = navigator.language.startsWith('zh') ? 'zh-CN' : 'en';
  document.addEventListener('click', ({target}) => {
    const button = target.closest?.('[data-language]');
    if (!button) return;
    const address = new URL(location);
    address.searchParams.set('lang', button.dataset.language);
    location.assign(address);
  });
})();
