// Runs side by side have an address, too.
watch('value', () => {
  const compared = element.querySelector('[data-compare]');
  if (!compared) return;
  showAddress('compare', compared.dataset.compare);
  element.scrollIntoView({block: 'nearest'});
});
