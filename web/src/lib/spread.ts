// How often figures of the past were how large: bars of powers of two. Pure.

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

/** Quotients, where both are there and the second is not 0. */
export function quotients(all: (number | null)[], by: (number | null)[]): (number | null)[] {
  return all.map((value, i) => (value === null || !by[i] ? null : value / by[i]));
}
