/**
 * Branded identifiers: a `PacketId` cannot be passed where a `MessageId` is meant. Each brand says where the id is unique.
 * A cast (`as MessageId`) is allowed only where a value crosses the wire, comes from the store, or is newly made.
 */
declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** One transmission; unique per sender (PROTOCOL envelope). */
export type PacketId = Branded<'PacketId'>
/** One request and its answer; unique per link. */
export type RequestId = Branded<'RequestId'>
/** A business message, unique within its channel (v2 §3). */
export type MessageId = Branded<'MessageId'>
/** `connector_channel_id` as xAgent knows it: the gateway's own, or adopted. */
export type ChannelId = Branded<'ChannelId'>
/** `connector_channel_id` as the legacy connector knows it; may change when the connector restarts. */
export type LegacyChannelId = Branded<'LegacyChannelId'>
/** Runtime instance shown to xAgent; stable for the life of a route. */
export type ConnectorId = Branded<'ConnectorId'>
/** Runtime instance of the legacy connector. */
export type LegacyConnectorId = Branded<'LegacyConnectorId'>
export type ConnectorCardId = Branded<'ConnectorCardId'>
export type ToolId = Branded<'ToolId'>
export type ProfileId = Branded<'ProfileId'>
/** A reply address inside a channel; unique within the channel. */
export type ConversationKey = Branded<'ConversationKey'>
/** One socket; unique per process. */
export type LinkId = Branded<'LinkId'>
/** One fronted connector: its name in the configuration. */
export type RouteName = Branded<'RouteName'>

/** Longest id taken from the wire, in UTF-8 bytes. Longer ones are refused as `invalid_packet`. */
export const MAX_ID_BYTES = 1024
