import { afterEach, describe, expect, it, vi } from 'vitest';
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
