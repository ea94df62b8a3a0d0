// Paths that hosts had an hour ago and lost, until they have them again: the map keeps their place. Pure.

import type { NodeEvent, Session } from '../api/types.ts';
import { clock } from './format.ts';
import { address, machineKey, nicKey } from './nics.ts';

/** A session that ended; `lost`: since when, and why. */
export type LostPath = Session & { lost: string };

const KEPT_MS = 3_600_000;
/** Why a session ends that nobody meant to end. */
const UNMEANT = /closed the connection|connection failed|did not (answer|read)|broke the protocol/;

/** By its NIC, where that is known, and by its address. */
const routeKeys = (session: Session) => [`${nicKey(session)}\n${session.portal}`, `${machineKey(session)}\n${address(session.from)}\n${session.portal}`];

/** `events`: the newest first; `ended`: sessions as they were last seen, which say what NIC they went over. */
export function lostPaths(events: NodeEvent[], sessions: Session[], ended: Map<number, Session>, now: number): LostPath[] {
  const closed = events
    .filter(({ code, object, time }) => code === 'session_closed' && object.kind === 'host' && now - Date.parse(time) < KEPT_MS)
    .map(({ time, object, fields }) => ({ time, object, fields: { ...fields } as Record<string, unknown> }))
    .filter(({ fields }) => typeof fields.portal === 'string');
  // Asked each second: of 10,000 sessions nothing is made where none has ended.
  if (!closed.length) return [];
  const taken = new Set(sessions.filter((session) => session.target !== undefined).flatMap(routeKeys));
  const lost: LostPath[] = [];
  for (const { time, object, fields } of closed) {
    const ids = { id: Number(fields.session), host: object.name, initiator: fields.initiator, from: fields.from, portal: fields.portal, target: fields.target, luns: [] } as unknown as Session;
    const seen = ended.get(ids.id);
    const known = seen?.from === ids.from ? seen : sessions.find((one) => machineKey(one) === machineKey(ids) && address(one.from) === address(ids.from));
    const session = known?.nic ? { ...ids, nic: known.nic } : ids;
    const key = routeKeys(session)[session.nic ? 0 : 1] ?? '';
    // Whatever became of it last counts.
    if (taken.has(key)) continue;
    taken.add(key);
    if (fields.reason === undefined || UNMEANT.test(String(fields.reason))) lost.push({ ...session, lost: `lost since ${clock(time).slice(0, 5)}` });
  }
  return lost;
}
