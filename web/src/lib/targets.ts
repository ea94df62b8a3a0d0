// What a target does with logins. Pure.

import type { Target } from '../api/types.ts';
import type { State } from './verdict.ts';

export function targetShown(target: Target): { state: State; word: string } {
  if (target.maintenance) return { state: 'warn', word: 'in maintenance' };
  if (target.redirect) return { state: 'warn', word: `logins go to ${target.redirect.to}` };
  return target.portals.length ? { state: 'good', word: 'takes logins' } : { state: 'bad', word: 'no portal listens' };
}
