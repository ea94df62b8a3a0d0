// How the page stands with its daemon: live, or since when not. Pure: the time is an argument.

export type Link =
  | { state: 'starting' }
  | { state: 'live'; at: number }
  | { state: 'reconnecting'; at: number }
  | { state: 'stale'; at: number };

/** So long after the last answer the figures are not called live any more, in milliseconds. */
export const LATE_MS = 3_000;
/** So long after it they are called stale. */
export const STALE_MS = 10_000;

/** `at`: when the last answer came, `undefined` before the first; `failed`: the last request had none; `seen`: since when it asks, which a hidden page does not. */
export function link(now: number, at: number | undefined, failed: boolean, seen = 0): Link {
  if (at === undefined) return failed ? { state: 'reconnecting', at: now } : { state: 'starting' };
  const age = now - at;
  if (now - Math.max(at, seen) >= STALE_MS) return { state: 'stale', at };
  if (failed || age >= LATE_MS) return { state: 'reconnecting', at };
  return { state: 'live', at };
}

/** How long to wait before the next try, in milliseconds: longer and longer, 5 s at most. */
export function pause(failures: number): number {
  return Math.min(5_000, 500 * 2 ** Math.min(failures, 4));
}
