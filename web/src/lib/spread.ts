// How often figures were how large: bars of powers of two. Pure.

export interface Bar {
  /** From which value on; up to twice of it. */
  from: number;
  n: number;
  /** Of the highest bar, 0 to 1. */
  part: number;
}

/** Bars of all values above 0, without gaps between them; each is a power of two. */
export function spread(values: (number | null)[]): Bar[] {
  const counts = new Map<number, number>();
  for (const value of values) {
    if (value === null || value < 1) continue;
    const power = Math.floor(Math.log2(value));
    counts.set(power, (counts.get(power) ?? 0) + 1);
  }
  if (counts.size === 0) return [];
  const powers = [...counts.keys()];
  const first = Math.min(...powers);
  const most = Math.max(...counts.values());
  return Array.from({ length: Math.max(...powers) - first + 1 }, (_, i) => {
    const n = counts.get(first + i) ?? 0;
    return { from: 2 ** (first + i), n, part: n / most };
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
