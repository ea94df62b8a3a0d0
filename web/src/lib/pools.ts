// What a pool's state means, and how full it is. Pure.

import type { Pool } from '../api/types.ts';
import { bytes, seconds } from './format.ts';
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

type Room = Pick<Pool, 'total' | 'used' | 'available'>;

/** What can be used, in bytes, as alerts count it. */
export function usable(pool: Room): number {
  return pool.used + pool.available;
}

/** What the file system keeps for itself: nobody can use it, and it is not full. */
export function reserved(pool: Room): number {
  return Math.max(0, pool.total - usable(pool));
}

/** The part that is in use of what can be used, 0 to 1. */
export function fill(pool: Room): number {
  return usable(pool) > 0 ? pool.used / usable(pool) : 0;
}

/** `3 GiB of 20 GiB free`, with what is kept back where that is some. */
export function roomSaid(pool: Room): string {
  const kept = reserved(pool);
  return `${bytes(pool.available)} of ${bytes(usable(pool))} free${kept ? `, ${bytes(kept)} more reserved by the file system` : ''}`;
}

/** Of a journal: the part that is in use, 0 to 1. */
export function journalFill(journal: { size_bytes: number; used_bytes: number }): number {
  return journal.size_bytes > 0 ? journal.used_bytes / journal.size_bytes : 0;
}

const DAY = 86_400;

type Coming = Pick<Pool, 'forecast' | 'full_in_seconds'>;

/** When it is full, in one sentence: by the last hour where that is within a day, else by the history of days. */
export function forecast(pool: Coming): string {
  const soon = pool.full_in_seconds;
  const hour = soon === undefined ? undefined : `full in ${seconds(soon)} at the rate of the last hour`;
  if (hour && soon !== undefined && soon < DAY) return hour;
  return pool.forecast?.text ?? hour ?? 'does not fill up at the rate of the last hour';
}

/** It says something: a history of less than a day, of a pool that is not about to be full, does not. */
export function isForetold(pool: Coming): boolean {
  return pool.forecast?.trend !== 'too_little' || (pool.full_in_seconds ?? Infinity) < DAY;
}
