// Where a click on a line of the map leads. Pure.

import { objectHref } from './objects.ts';
import type { Edge } from './topology.ts';

export type Lead = { sessions: number[] } | { href: string };

function page(kind: string, name: string): Lead | undefined {
  const href = objectHref(kind, name);
  return href === undefined ? undefined : { href };
}

/** The name in an id of this kind. */
const named = (id: string, kind: string) => (id.startsWith(`${kind}:`) ? id.slice(kind.length + 1) : undefined);

/**
 * The sessions of a line; the page of the LUN or pool of one that has none; the host of a path that is lost. A line of
 * what is not drawn leads nowhere, and says so by its cursor.
 */
export function leadOf({ from, to: end, sessions }: Pick<Edge, 'from' | 'to' | 'sessions'>, isPool: (name: string) => boolean): Lead | undefined {
  if (sessions?.length) return { sessions };
  const either = (kind: string) => named(end, kind) ?? named(from, kind);
  const lun = either('lun');
  if (lun !== undefined) return page('lun', lun);
  const pool = either('pool');
  if (pool !== undefined && isPool(pool)) return page('pool', pool);
  const host = named(from, 'host') ?? named(from, 'port')?.split('\n', 1)[0];
  return host === undefined ? undefined : page('host', host);
}
