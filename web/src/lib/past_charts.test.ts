import { describe, expect, it } from 'vitest';
import { drawnOf, type History } from '../live/past.svelte.ts';
import { hitsOf, JOURNAL_CHARTS, JOURNAL_METRICS, partOf, spaceCharts, stageCharts, stageMetrics } from './past_charts.ts';

describe('what was recorded', () => {
  const history: History = {
    from: '1970-01-01T00:01:40Z', step: 10,
    lines: [{ metric: 'journal_used_bytes', mean: [50, null, 90] }, { metric: 'journal_size_bytes', mean: [100, null, 100] }],
  };

  it('is drawn with its gaps, and the newest figures are those that are known', () => {
    const drawn = [{ name: 'in use', of: (row: Record<string, number | undefined>) => partOf(row, 'journal_used_bytes', 'journal_size_bytes') }];
    const [ring, newest] = drawnOf(history, drawn);
    expect(ring.read(['in use'])).toEqual([[100, 110, 120], [50, null, 90]]);
    expect(newest).toEqual({ 'in use': 90 });
    history.lines.forEach((line) => (line.mean[2] = null));
    expect(drawnOf(history, drawn)[1]).toEqual({ 'in use': 50 });
  });

  it('of a journal has a mark where there is a journal, and asks for all that it draws', () => {
    const lines = JOURNAL_CHARTS.flatMap((chart) => chart.lines);
    const mark = lines.find((line) => line.name === 'alert above');
    const of = mark && typeof mark.of === 'function' ? mark.of : () => -1;
    expect([of({}), of({ journal_size_bytes: 1 })]).toEqual([undefined, 80]);
    for (const { of } of [...lines, ...stageCharts('p50').flatMap((chart) => chart.lines)]) {
      if (typeof of === 'string') expect([...JOURNAL_METRICS, ...stageMetrics('p50')]).toContain(of);
    }
  });

  it('of a pool has for its size what can be used', () => {
    const size = spaceCharts(5)[0]?.lines.find((line) => line.name === 'can be used')?.of;
    expect(typeof size === 'function' && [size({ size_bytes: 100 }), size({})]).toEqual([95, undefined]);
  });

  it('of a cache has no share where nothing was read', () => {
    expect([{ cache_hits: 3, cache_misses: 1 }, { cache_hits: 0, cache_misses: 0 }, { cache_hits: 1 }].map(hitsOf)).toEqual([75, undefined, undefined]);
    expect(partOf({ a: 1, b: 0 }, 'a', 'b')).toBeUndefined();
  });
});
