// What of a screen or a dialog a phone cannot show.

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 800 };

/** What is beyond the right edge and cannot be scrolled to, or is wider than the box that cuts it. */
export function beyond(): string[] {
  const found: string[] = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const scrolls = (one: Element) => /auto|scroll/.test(getComputedStyle(one).overflowX);
  const within = document.querySelector('dialog[open]') ?? document.body;
  for (const one of within.querySelectorAll<HTMLElement | SVGElement>('button, a[href], input, select, textarea, p, td, th, h1, h2, dd, svg, .state')) {
    if (!one.checkVisibility({ visibilityProperty: true }) || one.closest('.unseen, .skip, .who, .search')) continue;
    const { right, left, width, height } = one.getBoundingClientRect();
    const frame = one.closest('.card, ul.list, dialog')?.getBoundingClientRect().right ?? innerWidth;
    if (width < 2 || height < 2 || (right <= Math.min(frame, innerWidth) + 1 && left >= -1)) continue;
    let box = one.parentElement;
    while (box && !scrolls(box)) box = box.parentElement;
    if (!box) found.push(`${one.outerHTML.slice(0, 120)} from ${Math.round(left)} to ${Math.round(right)}`);
  }
  // What can be done with a row is not where nobody looks for it.
  for (const one of within.querySelectorAll('.scroll.stack :is(button, a[href])')) {
    const edge = one.closest('.scroll')?.getBoundingClientRect().right ?? innerWidth;
    if (one.checkVisibility() && one.getBoundingClientRect().right > edge + 1) found.push(`${one.textContent.trim()} is beyond the edge of its table`);
  }
  for (const one of within.querySelectorAll('[role=group] button')) {
    const text = document.createRange();
    text.selectNodeContents(one);
    if (new Set([...text.getClientRects()].map((line) => Math.round(line.top / 8))).size > 1) found.push(`${one.textContent} is on two lines`);
  }
  return found.slice(0, 6);
}
