import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { lists } from './lists.svelte.ts';

describe('lists', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('are asked for when a screen begins to show them, once for all of its parts', async () => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', (path: string) => {
      asked.push(path);
      return Promise.resolve(new Response('[]', { headers: { 'content-type': 'application/json' } }));
    });
    const ends = [lists.show('hosts', 'pools'), lists.show('pools')];
    expect(asked).toEqual([]);
    await Promise.resolve();
    expect(asked.filter((path) => /\/(hosts|pools)$/.test(path)).length).toBe(2);
    for (const end of ends) end();
  });
});

describe('the list of LUNs', () => {
  const lun = (name: string, allocated: number) => ({ name, state: 'online', allocated });
  const asked: string[] = [];
  let rows = [lun('a', 1), lun('b', 1)];

  beforeEach(() => {
    vi.useFakeTimers();
    asked.length = 0;
    vi.stubGlobal('fetch', (path: string) => {
      if (path.includes('/luns')) asked.push(path.slice(path.indexOf('/luns') + 1));
      const named = [...path.matchAll(/&name=([^&]+)/g)].map(([, name]) => name);
      const all = path.includes('removed') || !path.includes('/luns') ? [] : rows;
      return Promise.resolve(new Response(JSON.stringify(named.length ? all.filter((one) => named.includes(one.name)) : all)));
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  const later = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    lists.turn(Date.now(), true);
    await vi.advanceTimersByTimeAsync(0);
    return asked.splice(0);
  };
  const nothing = { sessions: false, luns: false, moved: [] };

  it('is asked for once, and then only of LUNs that did something, until it is another one', async () => {
    const end = lists.show('luns');
    const all = ['luns?without=ops', 'luns?removed=true&without=ops'];
    expect(await later(0)).toEqual(all);
    expect(await later(16_000)).toEqual([]);
    rows = [lun('a', 1), lun('b', 7)];
    lists.others({ ...nothing, moved: ['b'] });
    expect(await later(16_000)).toEqual(['luns?without=ops&name=b']);
    expect(lists.luns?.map((one) => one.allocated)).toEqual([1, 7]);
    // What was written may be destaged for a while.
    expect(await later(16_000)).toEqual(['luns?without=ops&name=b']);
    expect(await later(120_000)).toEqual([]);
    lists.others({ ...nothing, moved: Array.from({ length: 65 }, (_, i) => `lun-${i}`) });
    expect(await later(16_000)).toEqual(all);
    lists.others({ ...nothing, luns: true });
    expect(await later(0)).toEqual(all);
    expect(await later(310_000)).toEqual(all);
    end();
  });
});
