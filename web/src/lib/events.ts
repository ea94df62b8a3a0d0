// How severe events are. Pure.

import type { State } from './verdict.ts';

export function severity(word: string): State {
  if (['error', 'critical', 'alert'].includes(word)) return 'bad';
  if (word === 'warning') return 'warn';
  return word === 'notice' || word === 'good' ? 'good' : 'off';
}
