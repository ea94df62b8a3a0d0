// Parts of a column that has more than can be seen. Pure.

import { whole } from './format.ts';
import { DRAWN, PAGED, type From, type Window } from './topology.ts';

type Part = Pick<Window, 'from' | 'shown' | 'total'>;

/** `41–80 of 10,000` */
export function rangeOf(window: Part): string {
  return `${window.from + 1}–${window.from + window.shown} of ${whole(window.total)}`;
}

/** Where the part before this one begins; before the first comes the last. */
export function previous(window: Part, most = DRAWN): number {
  if (window.from > 0) return Math.max(0, window.from - most);
  return Math.floor((window.total - 1) / most) * most;
}

/** Where the part after this one begins; after the last comes the first. */
export function next(window: Part): number {
  const end = window.from + window.shown;
  return end < window.total ? end : 0;
}

/** A part of a list that begins so, as the address has it: what is no place in it is its begin. */
export function partOf(total: number, at: string, most: number): Part {
  const wanted = Number(at);
  const from = Number.isSafeInteger(wanted) && wanted > 0 && wanted < total ? wanted : 0;
  return { from, shown: Math.min(most, total - from), total };
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
