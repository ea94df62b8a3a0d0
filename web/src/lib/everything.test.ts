import { describe, expect, it } from 'vitest';
import { everything } from './everything.ts';

describe('all of a log', () => {
  it('is asked for page by page, until one is not full', async () => {
    const asked: string[] = [];
    const all = await everything('audit?filter=who:vera', async (path) => {
      asked.push(path);
      const from = Number(/cursor=(\d+)/.exec(path)?.[1] ?? 7_001);
      return Array.from({ length: Math.min(5_000, from - 1) }, (_, i) => ({ id: from - 1 - i }));
    });
    expect(all.map((one) => one.id)).toEqual(Array.from({ length: 7_000 }, (_, i) => 7_000 - i));
    expect(asked).toEqual(['audit?filter=who:vera&limit=5000', 'audit?filter=who:vera&limit=5000&cursor=2001']);
  });
});
