// Latency histograms: what the daemon has counted since it started, and what of that is new.

import type { Buckets, Latency } from '../api/types.ts';

const EMPTY: Latency = { count: 0, us_sum: 0, buckets: [] };

/** What was counted since `before`. Figures that went back count from zero. */
export function since(after: Latency = EMPTY, before: Latency = EMPTY): Latency {
  if (before.count > after.count || before.us_sum > after.us_sum) return after;
  const had = new Map(before.buckets);
  const buckets: Buckets = [];
  for (const [bound, n] of after.buckets ?? []) {
    const more = n - (had.get(bound) ?? 0);
    if (more > 0) buckets.push([bound, more]);
  }
  return { count: after.count - before.count, us_sum: after.us_sum - before.us_sum, buckets };
}

export function sum(all: Latency[]): Latency {
  const counts = new Map<number, number>();
  let count = 0;
  let us_sum = 0;
  for (const one of all) {
    count += one.count;
    us_sum += one.us_sum;
    for (const [bound, n] of one.buckets ?? []) counts.set(bound, (counts.get(bound) ?? 0) + n);
  }
  return { count, us_sum, buckets: [...counts].sort((a, b) => a[0] - b[0]) };
}

/** The bound in microseconds that this part of all (0 to 1) did not exceed; nothing counted: `undefined`. */
export function quantile(latency: Latency, part: number): number | undefined {
  const wanted = Math.max(1, Math.ceil(latency.count * part));
  let seen = 0;
  for (const [bound, n] of latency.buckets ?? []) {
    seen += n;
    if (seen >= wanted) return bound;
  }
  return undefined;
}
