// Parts of a column that has more than can be seen. Pure.

import { DRAWN, PAGED, type From, type Window } from './topology.ts';

/** `41–80 of 10,000` */
export function rangeOf(window: Window): string {
  return `${window.from + 1}–${window.from + window.shown} of ${window.total.toLocaleString('en')}`;
}

/** Where the part before this one begins; before the first comes the last. */
export function previous(window: Window): number {
  if (window.from > 0) return Math.max(0, window.from - DRAWN);
  return Math.floor((window.total - 1) / DRAWN) * DRAWN;
}

/** Where the columns begin, as the address has it: `lun:40,host:80`. */
export function fromText(text: string): From {
  const from: From = {};
  for (const part of text.split(',')) {
    const [kind, at] = part.split(':');
    const paged = PAGED.find((one) => one === kind);
    const number = Number(at);
    if (paged && Number.isSafeInteger(number) && number > 0) from[paged] = number;
  }
  return from;
}

export function textOf(from: From): string | undefined {
  return PAGED.filter((kind) => from[kind]).map((kind) => `${kind}:${from[kind]}`).join(',') || undefined;
}
