// Which of several states is the worst. Pure.

import type { State } from './verdict.ts';

const WORST: State[] = ['bad', 'warn', 'off', 'good'];

/** For sorting: the worst first. */
export const byState = (a: State, b: State): number => WORST.indexOf(a) - WORST.indexOf(b);

/** The worst of these; `off` where there is none. */
export const worst = (states: State[]): State => [...states].sort(byState)[0] ?? 'off';
