// What is to be done alike in several places, as one thing. Pure.

import type { Alert } from '../api/types.ts';
import { sentence } from './alerts.ts';
import { compare } from './format.ts';
import { grouped } from './grouped.ts';
import { kindWord } from './objects.ts';

export interface ToDo {
  text: string;
  next?: string;
  href?: string;
}

/** So many are said together: of two each says its cause. */
const TOGETHER = 3;
/** Named in one sentence. */
const NAMED = 4;

/** `a, b, c, d …` */
export function named(names: string[]): string {
  return names.slice(0, NAMED).join(', ') + (names.length > NAMED ? ' …' : '');
}

function one(alert: Alert): ToDo {
  return { text: sentence(alert.cause), next: sentence(alert.next_step), href: `/alerts/${alert.id}` };
}

function together(alerts: Alert[], first: Alert): ToDo {
  const names = alerts.map((alert) => alert.object).sort(compare);
  const next = alerts.every((alert) => alert.next_step === first.next_step) ? sentence(first.next_step) : 'Each of them says what to do.';
  return { text: `${sentence(first.title).slice(0, -1)}: ${alerts.length} ${kindWord(first.kind)}s (${named(names)}).`, next, href: `/alerts?q=${encodeURIComponent(first.rule)}` };
}

/** Alerts of one rule about objects of one kind are one thing to do; it stands where the first of them stood. */
export function fromAlerts(alerts: Alert[]): ToDo[] {
  return [...grouped(alerts, (alert) => `${alert.rule} ${alert.kind}`).values()].flatMap((some) => {
    const [first] = some;
    return first && some.length >= TOGETHER ? [together(some, first)] : some.map(one);
  });
}

/** Of hosts with a single path. */
export function fromSingle(hosts: string[], another: boolean): ToDo[] {
  const all = hosts.length >= TOGETHER;
  const remedy = another ? `log ${all ? 'them' : 'it'} in to a second portal` : 'the node has one portal only, give it another in node.toml';
  if (all) return [{ text: `${hosts.length} hosts have a single path (${named(hosts)}): ${remedy}.`, href: '/hosts?sort=state' }];
  return hosts.map((host) => ({ text: `Host ${host} has a single path: ${remedy}.`, href: `/hosts/${encodeURIComponent(host)}` }));
}
