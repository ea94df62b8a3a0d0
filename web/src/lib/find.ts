// Finds by name: what begins with the text first, then what has it somewhere, then what has its letters. Pure.

export interface Entry {
  kind: string;
  name: string;
  icon: string;
  href?: string;
  run?: () => void;
  hint?: string;
  /** What it is found by besides its name. */
  also?: string;
}

/** What is longer is a sentence. */
const NAME_MAX = 64;

export function find(entries: Entry[], text: string, most: number): Entry[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return entries.slice(0, most);
  const ranks: Entry[][] = [[], [], [], [], []];
  for (const entry of entries) {
    const rank = rankOf(entry, wanted);
    if (rank !== undefined) ranks[rank]?.push(entry);
  }
  return ranks.flat().slice(0, most);
}

/** What can be done with an object, by its kind: what it is called, and what its address says then. */
const ACTS: Record<string, [name: string, act: string][]> = {
  LUN: [['Grow', 'grow'], ['Grant', 'grant'], ['Settings of', 'set'], ['Rename', 'rename'], ['Scrub', 'scrub'], ['Delete', 'delete']],
  'Deleted LUN': [['Restore', 'restore'], ['Destroy', 'purge']],
  Host: [['Grant a LUN to', 'grant'], ['Settings of', 'set'], ['Rename', 'rename'], ['Delete', 'delete']],
  Target: [['Settings of', 'set'], ['Rename', 'rename'], ['Delete', 'delete']],
};
/** Objects whose acts are offered. */
const ACTED = 2;

function actsOn(object: Entry): Entry[] {
  return (ACTS[object.kind] ?? []).map(([name, act]) => ({ kind: 'Do', name: `${name} ${object.name}`, icon: object.icon, href: `${object.href}?do=${act}` }));
}

/** Objects by name, and below them what can be done with the first ones; `grow vm01` finds the act itself. */
export function findWithActs(entries: Entry[], text: string, most: number): Entry[] {
  const [verb = '', ...rest] = text.trim().toLowerCase().split(/\s+/);
  const acts = rest.length ? find(entries, rest.join(' '), most).flatMap(actsOn).filter((act) => act.name.toLowerCase().startsWith(verb)) : [];
  const found = find(entries, text, most);
  const more = text.trim() ? found.filter((entry) => ACTS[entry.kind]).slice(0, ACTED).flatMap(actsOn) : [];
  return [...new Map([...acts, ...found, ...more].map((entry) => [`${entry.kind} ${entry.href ?? entry.name}`, entry])).values()].slice(0, most);
}

function rankOf(entry: Entry, wanted: string): number | undefined {
  const name = entry.name.toLowerCase();
  if (name.startsWith(wanted)) return name === wanted ? 0 : 1;
  if (name.includes(wanted)) return 2;
  if (entry.also?.toLowerCase().includes(wanted) || entry.kind.toLowerCase().startsWith(wanted)) return 3;
  // A long sentence has the letters of any word.
  return name.length <= NAME_MAX && inOrder(name, wanted) ? 4 : undefined;
}

/** All letters of `wanted` stand in `name`, in this order. */
function inOrder(name: string, wanted: string): boolean {
  let at = 0;
  for (const letter of wanted) {
    at = name.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/** A filter that somebody typed is in one of the texts; an empty one fits all. */
export function matches(filter: string, ...texts: string[]): boolean {
  const wanted = filter.trim().toLowerCase();
  return !wanted || texts.some((text) => text.toLowerCase().includes(wanted));
}
