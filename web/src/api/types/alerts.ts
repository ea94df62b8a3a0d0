// Alerts, their rules, silences and receivers.

export type Severity = 'info' | 'warning' | 'critical';

/** Alerts that are not over. The severities: what nobody has acknowledged or silenced. */
export interface AlertCounts {
  critical: number;
  warning: number;
  info: number;
  acknowledged: number;
  silenced: number;
}

export interface AlertStep {
  at: string;
  what: string;
  by?: string;
  note?: string;
}

export interface Alert {
  id: number;
  state: 'firing' | 'acknowledged' | 'silenced' | 'resolved';
  severity: Severity;
  rule: string;
  title: string;
  kind: string;
  object: string;
  cause: string;
  next_step: string;
  doc: string;
  fired: string;
  resolved?: string;
  acknowledged?: { by: string; at: string; note?: string };
  silence?: number;
  silenced_until?: string;
  steps: AlertStep[];
}

export interface Silence {
  id: number;
  rule?: string;
  kind?: string;
  object?: string;
  until: string;
  by: string;
  note: string;
  created: string;
  silenced: number;
}

export interface Bound {
  value: number;
  default: number;
  least: number;
  most: number;
  meaning: string;
}

export interface AlertRule {
  id: string;
  title: string;
  enabled: boolean;
  severity: Severity;
  condition: string;
  over: string;
  hold_seconds: number;
  clear_seconds: number;
  bounds: Record<string, Bound>;
  next_step: string;
  doc: string;
  is_changed: boolean;
  firing: number;
}

export type Encryption = 'starttls' | 'tls' | 'none';

export interface Receiver {
  name: string;
  kind: 'webhook' | 'mail' | 'command';
  enabled: boolean;
  least: Severity;
  rules: string[];
  group_seconds: number;
  remind_hours: number;
  resolved: boolean;
  webhook?: { at: string; has_token: boolean; has_ca: boolean };
  mail?: { server: string; port: number; encryption: Encryption; user?: string; has_password: boolean; from: string; to: string[]; has_ca: boolean };
  command?: { name: string };
  delivered: number;
  failed: number;
  waiting: number;
  last_success?: string;
  last_failure?: string;
  problem?: string;
}
