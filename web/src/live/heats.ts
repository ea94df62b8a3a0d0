// The last minutes of how long commands took, for some LUNs: columns of a heat map.

import { countsOf, together, type Column } from '../lib/heat.ts';
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
    return together([...this.columns.read, ...this.columns.write]);
  }
}
