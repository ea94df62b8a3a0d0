// What a pool's state means, and how full it is. Pure.

import type { Pool } from '../api/types.ts';
import { seconds } from './format.ts';
import type { State } from './verdict.ts';

export function poolState(pool: Pool): State {
  if (['full', 'missing', 'silent', 'unusable'].includes(pool.state)) return 'bad';
  if (pool.state === 'low' || pool.health?.severity === 'warning' || pool.overcommitted_bytes) return 'warn';
  return pool.health?.severity === 'error' ? 'bad' : 'good';
}

const WORDS: Record<Pool['state'], string> = {
  ok: 'has room',
  low: 'nearly full',
  full: 'full',
  missing: 'missing',
  silent: 'does not answer',
  unusable: 'cannot be used',
};

export function poolWord(pool: Pool): string {
  if (pool.state === 'ok' && pool.overcommitted_bytes) return 'overcommitted';
  if (pool.state === 'ok' && pool.health && pool.health.severity !== 'ok') return `${pool.health.system}: ${pool.health.severity}`;
  return WORDS[pool.state];
}

/** What is used of what can be used, 0 to 1, as alerts count it: what the file system keeps for itself is neither. */
export function fill(pool: Pool): number {
  const usable = pool.used + pool.available;
  return usable > 0 ? pool.used / usable : 0;
}

/** Of a journal: the part that is in use, 0 to 1. */
export function journalFill(journal: { size_bytes: number; used_bytes: number }): number {
  return journal.size_bytes > 0 ? journal.used_bytes / journal.size_bytes : 0;
}

const DAY = 86_400;

/** When it is full: by the history of days; and by the last hour, where that is within a day or all that is known. */
export function forecast(pool: Pick<Pool, 'forecast' | 'full_in_seconds'>): string {
  const soon = pool.full_in_seconds;
  const hour = soon === undefined ? undefined : `full in ${seconds(soon)} at the rate of the last hour`;
  if (!pool.forecast) return hour ?? 'does not fill up at the rate of the last hour';
  const isKnown = pool.forecast.trend !== 'too_little';
  return hour && (soon === undefined || soon < DAY || !isKnown) ? `${pool.forecast.text}; ${hour}` : pool.forecast.text;
}
