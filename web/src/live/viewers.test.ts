// What scripts/viewers asks is what the page asks: its file is held against the screens and their lists.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { lists, type ListName } from './lists.svelte.ts';

interface Shown {
  shown_by: string[];
  lists: Partial<Record<ListName, number>>;
}

const root = new URL('../../../', import.meta.url);
const asked = JSON.parse(readFileSync(new URL('scripts/viewers.json', root), 'utf8')) as {
  everywhere: Shown;
  screens: Record<string, Shown>;
  paths: Record<string, string>;
};
const all = Object.entries({ everywhere: asked.everywhere, ...asked.screens });

/** The lists that a file of the page shows. */
function shown(file: string): string[] {
  const text = readFileSync(new URL(`web/src/${file}`, root), 'utf8');
  const named = [...text.matchAll(/lists\.show\(([^)]*)\)|LISTS: ListName\[\] = \[([^\]]*)\]/g)];
  return named.flatMap(([, given, listed]) => [...(listed ?? given ?? '').matchAll(/'(\w+)'/g)].map(([, name]) => name ?? ''));
}

describe('a viewer of scripts/viewers', () => {
  for (const [screen, { shown_by, lists: known }] of all) {
    it(`asks for the lists of the page: ${screen}`, () => {
      const named = new Set(shown_by.flatMap(shown));
      // What the page has in its head is shown by nobody.
      if (screen === 'everywhere') named.add('status');
      expect([...named].sort()).toEqual(Object.keys(known).sort());
    });
  }
});

describe('the lists of the page', () => {
  const MINUTES = 11;
  const times = new Map<string, number[]>();

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('fetch', (path: string) => {
      const below = path.slice(path.indexOf('/api/v1/') + '/api/v1/'.length);
      times.set(below, [...(times.get(below) ?? []), Date.now()]);
      const body = below === 'status' ? '{"generation":1}' : '[]';
      return Promise.resolve(new Response(body, { headers: { 'content-type': 'application/json' } }));
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('are asked for as often as a viewer asks for them', async () => {
    const wanted = all.flatMap(([, one]) => Object.entries(one.lists));
    const names = new Set(wanted.map(([name]) => name as ListName));
    names.delete('status');
    const end = lists.show(...names);
    for (let quarter = 0; quarter < MINUTES * 240; quarter += 1) {
      lists.turn(Date.now(), true);
      await vi.advanceTimersByTimeAsync(250);
    }
    end();
    for (const [name, seconds] of wanted) {
      // LUNs that do nothing are asked for with all others only.
      const path = name === 'luns' ? 'luns?without=ops' : (asked.paths[name] ?? name);
      const at = times.get(path) ?? [];
      const every = name === 'luns' ? 300 : seconds;
      expect(at.length, path).toBeGreaterThan(2);
      // The first answer of the status has the generation, with which objects are asked for anew.
      const spans = at.slice(1).map((time, index) => (time - (at[index] ?? 0)) / 1000);
      expect(Math.round(spans.at(-1) ?? 0), path).toBe(every);
    }
  });
});
