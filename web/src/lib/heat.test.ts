import { describe, expect, it } from 'vitest';
import { columnsOf, countsOf, heat, joined, longestOf, ROWS, rowOf, tableOf, together, unknown, upToNow, type RecordedMap } from './heat.ts';
import { counted, spread } from './spread.ts';

describe('a heat map', () => {
  it('puts each latency into the row that it fits in', () => {
    expect([0, 1, 2, 3, 64, 65, 1e9].map(rowOf)).toEqual([0, 0, 1, 2, 6, 7, ROWS - 1]);
    for (const us of [1, 5, 64, 1000, 1e6]) expect(longestOf(rowOf(us))).toBeGreaterThanOrEqual(us);
    expect([...countsOf([[64, 3], [100, 1], [128, 2]])].slice(6, 9)).toEqual([3, 3, 0]);
  });
  it('adds up what falls into one drawn column, and leaves out what is older', () => {
    const column = (at: number, n: number) => ({ at, counts: countsOf([[64, n]]) });
    const map = heat([column(9, 50), column(10, 1), column(11, 2), column(15, 9)], 10, 20, 2);
    expect(map.starts).toEqual([10, 15]);
    expect(map.cells.map(({ column: at, row, n }) => [at, row, n])).toEqual([[0, 6, 3], [1, 6, 9]]);
    expect(map).toMatchObject({ most: 9, lowest: 6, highest: 6 });
    expect(map.cells[1]?.heat).toBe(1);
    expect(map.cells[0]?.heat).toBeGreaterThan(0.5);
  });
  it('begins with what was recorded, and goes on with what was seen since', () => {
    const map: RecordedMap = {
      from: '1970-01-01T00:01:40Z', step: 10, bounds_us: Array.from({ length: ROWS }, (_, row) => 2 ** row),
      read: [[0, 6, 3], [2, 6, 4], [2, 7, 1]], write: [[0, 6, 10]],
    };
    const reads = columnsOf(map, map.read);
    expect(reads.map(({ at, counts }) => [at, counts[6], counts[7]])).toEqual([[105, 3, 0], [125, 4, 1]]);
    const all = together([...reads, ...columnsOf(map, map.write)]);
    expect(all.map(({ at, counts }) => [at, counts[6]])).toEqual([[105, 13], [125, 4]]);
    // The column from 120 to 130 was recorded: what was seen within it would count twice.
    const seen = [100, 129, 130, 131].map((at) => ({ at, counts: countsOf([[64, 1]]) }));
    expect(joined(reads, map.step, seen).map((column) => column.at)).toEqual([105, 125, 130, 131]);
    expect(joined([], 0, seen)).toEqual(seen);
  });
  it('leaves no column out of its table, the newest first', () => {
    const columns = Array.from({ length: 100 }, (_, i) => ({ at: i, counts: countsOf([[64, 1 + i], [128, 1]]) }));
    const rows = tableOf(heat(columns, 0, 100, 100));
    expect(rows.map((row) => row.at)).toEqual(Array.from({ length: 100 }, (_, i) => 99 - i));
    expect(rows[0]?.cells).toEqual([[64, 100], [128, 1]]);
  });
  it('tells apart where no command came and where nothing was recorded', () => {
    const map = heat([{ at: 45, counts: countsOf([[64, 1]]) }], 0, 60, 6);
    // Before the daemon was there, and while it was away; what was seen then was seen.
    expect(unknown(map, 10, [[21, 30], [58, 60]])).toEqual([[0, 2], [3, 4]]);
    expect(unknown(map, 10, [])).toEqual([[0, 4], [5, 6]]);
    expect(unknown(map, 10, [[0, 60]])).toEqual([]);
    expect(unknown(heat([], 0, 60, 6), 10, [])).toEqual([[0, 6]]);
  });
  it('waits for the newest of what is recorded, and no longer', () => {
    expect(upToNow([[0, 20], [40, 90]], 100, 15)).toEqual([[0, 20], [40, 100]]);
    expect(upToNow([[0, 20], [40, 90]], 120, 15)).toEqual([[0, 20], [40, 90]]);
    expect(upToNow([], 120, 15)).toEqual([]);
  });
  it('of nothing has no cell', () => {
    expect(heat([], 0, 10, 5)).toMatchObject({ cells: [], most: 0 });
  });
});

describe('a spread', () => {
  it('counts by powers of two, without gaps', () => {
    expect(spread([1, 4, 5, 7, null, 16], 1)).toEqual([
      { from: 1, n: 1, part: 1 / 3 }, { from: 2, n: 0, part: 0 }, { from: 4, n: 3, part: 1 }, { from: 8, n: 0, part: 0 }, { from: 16, n: 1, part: 1 / 3 },
    ]);
    expect(spread([null], 1)).toEqual([]);
  });
  it('of what was counted has what came since, without gaps, and all after a restart', () => {
    const now: [number, number][] = [[4096, 10], [16384, 3]];
    expect(counted(now)).toEqual([{ from: 4096, n: 10, part: 1 }, { from: 8192, n: 0, part: 0 }, { from: 16384, n: 3, part: 0.3 }]);
    expect(counted(now, [[4096, 8]])).toEqual([{ from: 4096, n: 2, part: 2 / 3 }, { from: 8192, n: 0, part: 0 }, { from: 16384, n: 3, part: 1 }]);
    expect(counted(now, now)).toEqual([]);
    expect(counted([[4096, 5]], now).map((bar) => bar.n)).toEqual([5]);
    expect(counted([[4096, 12]], now).map((bar) => bar.n)).toEqual([12]);
    expect(counted([], now)).toEqual([]);
  });
});
