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

  it('is one wherever it is a table', () => {
    const tables = Object.keys(sources).filter((path) => sources[path]?.includes('<table'));
    const without = tables.filter((path) => !has(path)).map((path) => path.replace('../', ''));
    expect(tables.length).toBeGreaterThan(24);
    // What differs of one object, in a dialog or of an entry of the audit log, whose file has both sides.
    expect(without.toSorted()).toEqual(['parts/Conflict.svelte', 'parts/DiffTable.svelte']);
  });

  it('is one where it is a list of its own', () => {
    const lists = [
      'overview/Busiest', 'overview/Capacity', 'overview/Latest', 'disks/Bays', 'disks/Findings', 'lab/BedPage', 'integrity/ScrubFindings', 'settings/Generations', 'settings/Orphans',
      'topology/Mistakes', 'hosts/Refused', 'hosts/Sessions', 'jobs/JobPage', 'alerts/AlertPage', 'alerts/Now', 'alerts/Over', 'alerts/Rules',
    ];
    expect(lists.filter((name) => !has(`../screens/${name}.svelte`))).toEqual([]);
    expect(['Overview', 'Topology', 'Lab', 'Jobs', 'Events'].filter((name) => !has(`../screens/${name}.svelte`))).toEqual([]);
  });
});
