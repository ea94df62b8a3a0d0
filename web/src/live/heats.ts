// The last minutes of how long commands took, for some LUNs: columns of a heat map.

import { countsOf, ROWS, type Column } from '../lib/heat.ts';
import type { Latency } from '../api/types.ts';

export type Op = 'read' | 'write';

/** The oldest are forgotten first; a second in which nothing was done takes no place. */
export class Heats {
  private readonly columns: Record<Op, Column[]> = { read: [], write: [] };
  private readonly size: number;

  constructor(size: number) {
    this.size = size;
  }

  push(at: number, op: Op, some: Latency): void {
    if (!some.buckets?.length) return;
    const columns = this.columns[op];
    columns.push({ at, counts: countsOf(some.buckets) });
    if (columns.length > this.size) columns.splice(0, columns.length - this.size);
  }

  of(op: Op | 'all'): Column[] {
    if (op !== 'all') return this.columns[op];
    const sums = new Map<number, Uint32Array>();
    for (const { at, counts } of [...this.columns.read, ...this.columns.write]) {
      const sum = sums.get(at) ?? new Uint32Array(ROWS);
      for (let row = 0; row < ROWS; row++) sum[row] = (sum[row] ?? 0) + (counts[row] ?? 0);
      sums.set(at, sum);
    }
    return [...sums].sort((a, b) => a[0] - b[0]).map(([at, counts]) => ({ at, counts }));
  }
}
