// Disks and bays.

export type DiskVerdict = 'unknown' | 'well' | 'watch' | 'replace_soon' | 'failing';

export interface DiskFinding {
  verdict: DiskVerdict;
  cause: string;
  next_step: string;
}

export interface DiskFacts {
  protocol?: string;
  passed?: boolean;
  wear_percent?: number;
  spare_percent?: number;
  spare_threshold_percent?: number;
  reallocated_sectors?: number;
  pending_sectors?: number;
  offline_uncorrectable_sectors?: number;
  uncorrected_errors?: number;
  media_errors?: number;
  grown_defects?: number;
  crc_errors?: number;
  temperature_celsius?: number;
  temperature_warning_celsius?: number;
  temperature_critical_celsius?: number;
  power_on_hours?: number;
  power_cycles?: number;
  unsafe_shutdowns?: number;
  self_test?: string;
  self_test_passed?: boolean;
  critical_warning?: number;
  failing_attributes?: string[];
  failed_before?: string[];
  logged_errors?: number;
}

export interface Disk {
  id: string;
  names: string[];
  model?: string;
  serial?: string;
  firmware?: string;
  wwn?: string;
  capacity_bytes?: number;
  rotation_rpm?: number;
  health: DiskVerdict;
  findings?: DiskFinding[];
  forecasts?: { of: string; text: string; before?: string; per_week_thousandths: number; samples: number; days: number }[];
  trends?: { of: string; per_week_thousandths?: number; samples: number; days: number }[];
  no_forecast?: string;
  smart: 'waiting' | 'read' | 'asleep' | 'unsupported' | 'not_permitted' | 'no_smartctl' | 'timed_out' | 'failed' | 'missing';
  smart_detail?: string;
  read_at?: string;
  facts: DiskFacts;
  used_by?: string[];
  bay?: string;
  missing_since?: string;
}

export interface Bay {
  name: string;
  enclosure: string;
  slot: string;
  state: 'empty' | 'disk' | 'dark' | 'no_start';
  status?: string;
  disk?: string;
  held?: { serial: string; model?: string; last_seen: string };
  finding?: DiskFinding;
}

export interface DiskReport {
  at?: string;
  disks: Disk[];
  bays: Bay[];
  notes?: string[];
  no_smart?: string;
}
