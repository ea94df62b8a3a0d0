// How often figures were how large: bars of powers of two. Pure.

export interface Bar {
  /** From which value on; up to twice of it. */
  from: number;
  n: number;
  /** Of the highest bar, 0 to 1. */
  part: number;
}

/**
 * For how many seconds a figure was how large: each value is the mean of a step of so many seconds. The first bar is of
 * what is below 1, the others are powers of two, without gaps between them; what is not known is in none.
 */
export function spread(values: (number | null)[], step: number): Bar[] {
  const times = new Map<number, number>();
  for (const value of values) {
    if (value === null) continue;
    const at = value < 1 ? 0 : Math.floor(Math.log2(value)) + 1;
    times.set(at, (times.get(at) ?? 0) + step);
  }
  if (times.size === 0) return [];
  const all = [...times.keys()];
  const first = Math.min(...all);
  const most = Math.max(...times.values());
  return Array.from({ length: Math.max(...all) - first + 1 }, (_, i) => {
    const at = first + i;
    const n = times.get(at) ?? 0;
    return { from: at === 0 ? 0 : 2 ** (at - 1), n, part: n / most };
  });
}

/** Bars of what was counted by powers of two, less what was counted before. Counters that went back count from zero. */
export function counted(now: [number, number][], before: [number, number][] = []): Bar[] {
  const had = new Map(before);
  const isNew = now.some(([from, n]) => n < (had.get(from) ?? 0)) || before.some(([from]) => !now.some(([one]) => one === from));
  const since = now.map(([from, n]) => [from, isNew ? n : n - (had.get(from) ?? 0)] as const).filter(([, n]) => n > 0);
  const [first] = since;
  const last = since.at(-1);
  if (!first || !last) return [];
  const most = Math.max(...since.map(([, n]) => n));
  const by = new Map(since);
  return Array.from({ length: Math.round(Math.log2(last[0] / first[0])) + 1 }, (_, i) => {
    const from = first[0] * 2 ** i;
    const n = by.get(from) ?? 0;
    return { from, n, part: n / most };
  });
}
