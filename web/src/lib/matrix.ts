// By how many paths each host reaches each LUN, the worst first. Pure.

import type { Grant, Host, Session } from '../api/types.ts';
import { compare } from './format.ts';
import { grouped } from './grouped.ts';

export interface Cell {
  state: 'good' | 'warn' | 'bad' | 'none';
  short: string;
  word: string;
  /** Which NICs, where the host tells them. */
  nics: string[];
}

export interface Matrix {
  hosts: string[];
  luns: string[];
  cell: (host: string, lun: string) => Cell;
}

const NONE: Cell = { state: 'none', short: '·', word: 'not granted', nics: [] };

export function matrix(grants: Grant[], hosts: Host[], sessions: Session[], filter: string): Matrix {
  const wanted = filter.trim().toLowerCase();
  const some = grants.filter((grant) => !wanted || grant.host.toLowerCase().includes(wanted) || grant.lun.toLowerCase().includes(wanted));
  const paths = new Map(hosts.flatMap((host) => (host.redundancy.targets ?? []).map((one) => [`${host.name}\n${one.target}`, one.least_paths] as [string, number])));
  const nics = grouped(sessions, (session) => `${session.host}\n${session.target}`);
  const granted = grouped(some, (grant) => `${grant.host}\n${grant.lun}`);
  const of = (host: string, lun: string): Cell => {
    const ways = (granted.get(`${host}\n${lun}`) ?? []).map((grant) => `${host}\n${grant.target}`);
    const least = ways.flatMap((way) => paths.get(way) ?? []);
    const names = ways.flatMap((way) => (nics.get(way) ?? []).flatMap((session) => session.nic?.name ?? []));
    return { ...shown(least.length ? Math.min(...least) : 0), nics: [...new Set(names)].sort() };
  };
  const each = some.map((grant) => ({ ...grant, rank: RANK[of(grant.host, grant.lun).state] }));
  return {
    hosts: worstFirst(each.map(({ host, rank }) => ({ name: host, rank }))),
    luns: worstFirst(each.map(({ lun, rank }) => ({ name: lun, rank }))),
    cell: (host, lun) => (granted.has(`${host}\n${lun}`) ? of(host, lun) : NONE),
  };
}

const RANK: Record<Cell['state'], number> = { bad: 2, warn: 1, good: 0, none: 0 };

/** By the worst of their cells, then by how many there are of that, then by name. */
function worstFirst(cells: { name: string; rank: number }[]): string[] {
  const worst = new Map<string, { rank: number; count: number }>();
  for (const { name, rank } of cells) {
    const known = worst.get(name);
    if (!known || known.rank < rank) worst.set(name, { rank, count: 1 });
    else if (known.rank === rank && rank > 0) known.count++;
  }
  return [...worst].sort(([a, x], [b, y]) => y.rank - x.rank || y.count - x.count || compare(a, b)).map(([name]) => name);
}

/** By the paths of the target over which it has the fewest. */
function shown(least: number): Omit<Cell, 'nics'> {
  if (least === 0) return { state: 'bad', short: '0 ×', word: 'granted, not connected' };
  if (least === 1) return { state: 'warn', short: '1 !', word: 'a single path' };
  return { state: 'good', short: String(least), word: `${least} paths` };
}
