/** What the status bar and its menu say. */

export interface Report {
  version: string;
  state: string;
  message: string;
  model: string;
  device: string;
  lastReason: string | null;
  lastLatencyMs: number | null;
}

export interface ServerStatus {
  busy: boolean;
  kind: string; // Normal, Error, Warning or Inactive
  message: string;
}

export interface Condition {
  running: boolean;
  starting: boolean;
  missing: boolean; // there is no command to run
  enabled: boolean;
  languageEnabled: boolean;
  snoozedUntil: number | undefined; // milliseconds, as Date.now() counts
  status: ServerStatus | undefined;
}

/** The status bar's text, with an icon. */
export function statusText(now: Condition): string {
  if (now.starting) return '$(loading~spin) Redraft';
  if (!now.running || now.status?.kind === 'Error') return '$(error) Redraft';
  if (now.snoozedUntil !== undefined) return '$(bell-slash) Redraft';
  if (!now.enabled || !now.languageEnabled) return '$(circle-slash) Redraft';
  return now.status?.busy ? '$(loading~spin) Redraft' : '$(edit-sparkle) Redraft';
}

/** Why nothing comes while no server runs. */
export function withoutServer({ starting, missing }: Pick<Condition, 'starting' | 'missing'>): string {
  if (starting) return 'the server starts';
  return missing ? 'the command `redraft` was not found' : 'the server is not running';
}

/** One line on how the server is doing. */
export function describe(report: Report): string {
  const parts = [`Redraft ${report.version}`, report.state];
  if (report.message) parts.push(report.message);
  if (report.model) parts.push(`model ${report.model}`);
  if (report.device) parts.push(`on ${report.device}`);
  if (report.lastLatencyMs !== null) parts.push(`last answer in ${Math.round(report.lastLatencyMs)} ms`);
  if (report.lastReason) parts.push(`last silence: ${report.lastReason}`);
  return parts.join(', ');
}

/** `list` without `item` where it has it, with it where not. */
export function toggled(list: string[], item: string): string[] {
  return list.includes(item) ? list.filter((one) => one !== item) : [...list, item];
}
