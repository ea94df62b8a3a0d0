// Every screen gives what it shows as a file.

import { describe, expect, it } from 'vitest';

const sources = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });

/** A component with all that stand within it; `../` is web/src. */
function within(path: string, seen = new Set<string>()): Set<string> {
  const text = sources[path];
  if (text === undefined || seen.has(path)) return seen;
  seen.add(path);
  for (const [, name = ''] of text.matchAll(/from '([^']+\.svelte)'/g)) {
    const url = new URL(name, new URL(path, 'file:///src/lib/'));
    within(url.pathname.replace('/src/', '../'), seen);
  }
  return seen;
}

const EXPORTS = /<Export\b/;
const has = (path: string) => EXPORTS.test(sources[path] ?? '');

describe('what a screen shows', () => {
  it('is a file on each of them', () => {
    const screens = Object.keys(sources).filter((path) => /^\.\.\/screens\/\w+\.svelte$/.test(path));
    // What is asked for at the first start is nothing to keep.
    const without = screens.filter((path) => ![...within(path)].some(has)).map((path) => path.split('/').at(-1));
    expect(screens.length).toBeGreaterThan(14);
    expect(without).toEqual(['FirstRun.svelte']);
  });

  it('is one where it is a list of its own', () => {
    const lists = ['overview/Busiest', 'overview/Capacity', 'disks/Bays', 'lab/BedPage', 'integrity/ScrubFindings', 'settings/Generations', 'settings/Orphans'];
    expect(lists.filter((name) => !has(`../screens/${name}.svelte`))).toEqual([]);
    expect(['Overview', 'Topology', 'Lab'].filter((name) => !has(`../screens/${name}.svelte`))).toEqual([]);
  });
});
