// Whether the first steps are shown by themselves: on a node without a LUN, until somebody has seen them.

import type { Counts } from '../api/types.ts';

const KEY = 'first-run';
export const PATH = '/first-run';

export function shownByItself(path: string, counts: Counts | undefined): boolean {
  return path === '/' && counts !== undefined && counts.luns + counts.luns_removed === 0 && localStorage.getItem(KEY) === null;
}

/** They are not shown by themselves any more in this browser. */
export function leave(): void {
  localStorage.setItem(KEY, 'seen');
}
