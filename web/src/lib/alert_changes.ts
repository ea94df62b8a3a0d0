// Changes of alerts, silences, rules and receivers. Pure.

import type { Alert, AlertRule, Encryption, Receiver, Severity } from '../api/types.ts';
import { cli, seg, type Change } from './changes.ts';
import { wholeOf } from './format.ts';

export const SEVERITIES: Severity[] = ['info', 'warning', 'critical'];
/** Where the form asks for hours: the longest silence is a year. */
export const HOURS_MAX = 8_784;
const HIDDEN = '…';

export function acknowledge(alert: Alert, note: string): Change {
  return {
    title: `Acknowledge alert ${alert.id}`,
    verb: 'Acknowledge',
    method: 'POST',
    path: `alerts/${alert.id}/acknowledge`,
    body: { note },
    cli: cli('alert', 'ack', String(alert.id), ...(note ? ['--note', note] : [])),
    plans: false,
    explain: 'Somebody takes care of it: no more reminders of it are sent. That it becomes worse, or is over, is.',
  };
}

export function unacknowledge(alert: Alert): Change {
  return {
    title: `Nobody takes care of alert ${alert.id}`,
    verb: 'Take it back',
    method: 'DELETE',
    path: `alerts/${alert.id}/acknowledge`,
    cli: cli('alert', 'unack', String(alert.id)),
    plans: false,
    explain: 'It fires again, and reminders of it are sent.',
  };
}

export function silenceAlert(alert: Alert, hours: number, note: string): Change {
  return {
    title: `Silence alert ${alert.id}`,
    verb: 'Silence',
    method: 'POST',
    path: `alerts/${alert.id}/silence`,
    body: { hours, note },
    cli: cli('alert', 'silence', String(alert.id), '--hours', String(hours), ...(note ? ['--note', note] : [])),
    plans: false,
    explain: 'For this time nothing is sent of it, also where it comes again. If it still fires then, it is sent.',
  };
}

export function unsilenceAlert(alert: Alert): Change {
  return {
    title: `End the silence of alert ${alert.id}`,
    verb: 'End it',
    method: 'POST',
    path: `alerts/${alert.id}/unsilence`,
    cli: cli('alert', 'unsilence', String(alert.id)),
    plans: false,
    explain: 'If it still fires, it is sent at once.',
  };
}

export interface SilenceForm {
  rule: string;
  kind: string;
  object: string;
  hours: number;
  note: string;
}

export function createSilence(form: SilenceForm): Change {
  const { rule, kind, object, hours, note } = form;
  const of = { ...(rule ? { rule } : {}), ...(kind ? { kind } : {}), ...(object ? { object } : {}) };
  const options = Object.entries(of).flatMap(([name, value]) => [`--${name}`, value]);
  return {
    title: 'Silence alerts',
    verb: 'Silence',
    method: 'POST',
    path: 'alerts/silences',
    body: { ...of, hours, note },
    cli: cli('alert', 'silence', ...(options.length ? options : ['--all']), '--hours', String(hours), ...(note ? ['--note', note] : [])),
    plans: false,
    explain: options.length ? 'For this time nothing is sent of alerts that fit.' : 'For this time nothing is sent of any alert.',
  };
}

export function endSilence(id: number): Change {
  return {
    title: `End silence ${id}`,
    verb: 'End it',
    method: 'DELETE',
    path: `alerts/silences/${id}`,
    cli: cli('alert', 'unsilence', '--silence', String(id)),
    plans: false,
    explain: 'What still fires is sent at once.',
  };
}

export interface RuleForm {
  enabled: boolean;
  severity: Severity;
  hold: number;
  clear: number;
  bounds: Record<string, number>;
}

export function ruleForm(rule: AlertRule): RuleForm {
  const bounds = Object.fromEntries(Object.entries(rule.bounds).map(([name, bound]) => [name, bound.value]));
  return { enabled: rule.enabled, severity: rule.severity, hold: rule.hold_seconds, clear: rule.clear_seconds, bounds };
}

/** The whole of a rule is sent; what is as the rule has it is left out, so that it stays so. */
export function setRule(rule: AlertRule, form: RuleForm): Change {
  const before = ruleForm(rule);
  const kept = rule.is_changed;
  const bounds = Object.fromEntries(Object.entries(form.bounds).filter(([name, value]) => value !== rule.bounds[name]?.default));
  const body = {
    ...(form.enabled !== before.enabled || !form.enabled ? { enabled: form.enabled } : {}),
    ...(form.severity !== before.severity || kept ? { severity: form.severity } : {}),
    ...(form.hold !== before.hold || kept ? { hold_seconds: form.hold } : {}),
    ...(form.clear !== before.clear || kept ? { clear_seconds: form.clear } : {}),
    ...(Object.keys(bounds).length ? { bounds } : {}),
  };
  const said = Object.entries(form.bounds).filter(([name, value]) => value !== before.bounds[name]);
  return {
    title: `Change rule ${rule.id}`,
    verb: 'Change',
    method: 'PUT',
    path: `alerts/rules/${seg(rule.id)}`,
    body,
    cli: cli(
      'alert', 'rule', 'set', rule.id, ...said.map(([name, value]) => `${name}=${value}`),
      ...(form.enabled === before.enabled ? [] : ['--enabled', String(form.enabled)]),
      ...(form.severity === before.severity ? [] : ['--severity', form.severity]),
      ...(form.hold === before.hold ? [] : ['--hold', String(form.hold)]),
      ...(form.clear === before.clear ? [] : ['--clear', String(form.clear)]),
    ),
    plans: false,
  };
}

export function resetRule(rule: AlertRule): Change {
  const bounds = Object.entries(rule.bounds).filter(([, bound]) => bound.value !== bound.default).map(([name, bound]) => `${name} goes from ${bound.value} back to ${bound.default}`);
  return {
    title: `Rule ${rule.id} as it was`,
    verb: 'Reset',
    method: 'PUT',
    path: `alerts/rules/${seg(rule.id)}`,
    body: {},
    cli: cli('alert', 'rule', 'reset', rule.id),
    plans: false,
    typed: rule.id,
    explain: ['It is as it is without anybody’s change: bounds, severity, and how long it waits', ...bounds].join('; ') + '.',
  };
}

export interface ReceiverForm {
  name: string;
  kind: Receiver['kind'];
  enabled: boolean;
  least: Severity;
  rules: string[];
  group: number;
  remind: number;
  resolved: boolean;
  url: string;
  token: string;
  server: string;
  port: string;
  encryption: Encryption;
  user: string;
  password: string;
  from: string;
  to: string;
  command: string;
  ca: string;
}

export function receiverForm(from?: Receiver): ReceiverForm {
  return {
    name: from?.name ?? '',
    kind: from?.kind ?? 'webhook',
    enabled: from?.enabled ?? true,
    least: from?.least ?? 'warning',
    rules: from?.rules ?? [],
    group: from?.group_seconds ?? 10,
    remind: from?.remind_hours ?? 24,
    resolved: from?.resolved ?? true,
    url: '',
    token: '',
    server: from?.mail?.server ?? '',
    port: from?.mail ? String(from.mail.port) : '',
    encryption: from?.mail?.encryption ?? 'starttls',
    user: from?.mail?.user ?? '',
    password: '',
    from: from?.mail?.from ?? '',
    to: from?.mail?.to.join(', ') ?? '',
    command: from?.command?.name ?? '',
    ca: '',
  };
}

const addresses = (text: string) => text.split(/[\s,;]+/).filter(Boolean);

/** How it gets messages; of one that is there, secrets that were not typed stay. */
function channel(form: ReceiverForm): Record<string, object> {
  const ca = form.ca.trim() ? { ca: form.ca } : {};
  if (form.kind === 'command') return { command: { name: form.command } };
  if (form.kind === 'webhook') {
    return { webhook: { ...(form.url ? { url: form.url } : {}), ...(form.token ? { token: form.token } : {}), ...ca } };
  }
  return {
    mail: {
      server: form.server,
      ...(form.port ? { port: wholeOf(form.port) } : {}),
      encryption: form.encryption,
      ...(form.user ? { user: form.user } : {}),
      ...(form.password ? { password: form.password } : {}),
      from: form.from,
      to: addresses(form.to),
      ...ca,
    },
  };
}

function common(form: ReceiverForm) {
  return { enabled: form.enabled, least: form.least, rules: form.rules, group_seconds: form.group, remind_hours: form.remind, resolved: form.resolved };
}

/** A body in which no secret can be read. */
function hidden(body: Record<string, unknown>): Record<string, unknown> {
  const copy = JSON.parse(JSON.stringify(body)) as { webhook?: Record<string, unknown>; mail?: Record<string, unknown> };
  for (const [inside, names] of [[copy.webhook, ['url', 'token']], [copy.mail, ['password']]] as const) {
    for (const name of names) if (inside?.[name]) inside[name] = HIDDEN;
  }
  return copy;
}

/** What differs from `before`, which is the receiver that is there, or what one is without any words. */
function options(form: ReceiverForm, before?: ReceiverForm): string[] {
  const was = before ?? receiverForm();
  const out: string[] = [];
  const add = (name: string, value: string | number | boolean) => (value === '' ? out.push(`--${name}=`) : out.push(`--${name}`, String(value)));
  const other = (name: string, value: string | number | boolean, old: string | number | boolean, place: string) => {
    if (!before || value !== old) add(name, value === '' ? place : value);
  };
  if (form.kind === 'webhook') {
    if (form.url) add('url-file', 'FILE');
    if (form.token) add('bearer-file', 'FILE');
  } else if (form.kind === 'command') {
    other('command', form.command, was.command, 'NAME');
  } else {
    other('server', form.server, was.server, 'HOST');
    if (form.port && form.port !== was.port) add('port', wholeOf(form.port) ?? form.port);
    if (form.encryption !== was.encryption) add('encryption', form.encryption);
    if (form.user !== was.user) add('user', form.user);
    if (form.password) add('password-file', 'FILE');
    other('from', form.from, was.from, 'ADDRESS');
    other('to', addresses(form.to).join(','), addresses(was.to).join(','), 'ADDRESS');
  }
  if (form.ca.trim()) add('ca-of-receiver', 'FILE');
  if (form.enabled !== was.enabled) add('enabled', form.enabled);
  if (form.least !== was.least) add('least', form.least);
  if (form.rules.join() !== was.rules.join()) add('rules', form.rules.join(','));
  if (form.group !== was.group) add('group-seconds', form.group);
  if (form.remind !== was.remind) add('remind-hours', form.remind);
  if (form.resolved !== was.resolved) add('resolved', form.resolved);
  // Whoever changes nothing changes this to what it is.
  if (before && !out.length) add('enabled', form.enabled);
  return out;
}

export function createReceiver(form: ReceiverForm): Change {
  const body = { name: form.name, ...common(form), ...channel(form) };
  return {
    title: 'Add a receiver',
    verb: 'Add',
    method: 'POST',
    path: 'alerts/receivers',
    body,
    shown: hidden(body),
    cli: cli('alert', 'receiver', 'create', form.name || 'NAME', ...options(form)),
    plans: false,
    explain: 'The node connects to it and sends it alerts. Secrets are kept on the node, and nothing shows them.',
  };
}

export function setReceiver(name: string, form: ReceiverForm, before: ReceiverForm): Change {
  const body: Record<string, unknown> = { ...common(form), ...channel(form) };
  // Who logged in there before, and does not any more.
  if (form.kind === 'mail' && !form.user) Object.assign(body['mail'] as object, { user: null, password: null });
  return {
    title: `Change receiver ${name}`,
    verb: 'Change',
    method: 'PATCH',
    path: `alerts/receivers/${seg(name)}`,
    body,
    shown: hidden(body),
    cli: cli('alert', 'receiver', 'set', name, ...options(form, before)),
    plans: false,
    explain: 'Secrets that are left empty stay as they are.',
  };
}

export function removeReceiver(name: string): Change {
  return {
    title: `Remove receiver ${name}`,
    verb: 'Remove',
    method: 'DELETE',
    path: `alerts/receivers/${seg(name)}`,
    cli: cli('alert', 'receiver', 'delete', name),
    plans: false,
    typed: name,
    explain: 'It is sent nothing any more, also not what waits.',
  };
}

export function testReceiver(name: string): Change {
  return {
    title: `Try receiver ${name}`,
    verb: 'Send a test',
    method: 'POST',
    path: `alerts/receivers/${seg(name)}/test`,
    cli: cli('alert', 'receiver', 'test', name),
    plans: false,
    explain: 'It is sent a message that says that nothing is wrong.',
  };
}
