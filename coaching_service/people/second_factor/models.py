"""Second factors as they are stored and returned, and the requests about them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Literal, NotRequired, TypedDict

from marshmallow import fields

from coaching_service.core.database.declared import Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text

MAX_NAME = 100
Encoded = partial(Text, max_length=10_000)  # of a browser, in base64url
Method = Literal["totp", "recoveryCode", "passkey"]


class StoredFactor(Stored):
    """The authenticator application of a coach or client: one that is in use, and one that is being set up.

    `sealed` is its encrypted secret; `usedSteps` are the last steps of time (of 30 seconds) whose code was accepted;
    `recoveryCodes` are hashes of those that are not used.
    """

    subjectId: ObjectId
    isConfirmed: bool
    sealed: bytes
    usedSteps: list[int]
    recoveryCodes: list[str]


class AuthenticatorSecret(TypedDict):
    """What an authenticator application needs to compute codes; it is shown once."""

    secret: Annotated[str, Description("In base32, to type into an application.")]
    otpauthUrl: Annotated[str, Description("The same as an address, which applications read as a QR code.")]


class ConfirmedFactor(TypedDict):
    """Codes that each sign in once instead of a code of the application; they are shown once."""

    recoveryCodes: Annotated[list[str], Description("10 codes, which are shown once.")]


class SecondFactor(TypedDict):
    """Which second factors the caller has."""

    methods: Annotated[
        list[Method], Description("What a sign-in accepts in addition to the password; empty: nothing is asked.")
    ]
    recoveryCodesLeft: Annotated[int, Description("How many recovery codes are not used.")]


class CodeToConfirm(TypedDict):
    """A code of the application that is being set up."""

    code: Annotated[str, Text(max_length=20), Description("6 digits that the application shows now.")]


class FactorAnswer(TypedDict):
    """What a user answers to a challenge: one of these."""

    code: NotRequired[Annotated[str | None, Text(max_length=20), Description("A code of the application.")]]
    recoveryCode: NotRequired[Annotated[str | None, Text(max_length=50), Description("A recovery code.")]]


class _AssertionResponse(TypedDict):
    """The answer of a passkey to a challenge."""

    clientDataJSON: Annotated[str, Encoded(), Description("What the browser has signed for, in base64url.")]
    authenticatorData: Annotated[str, Encoded(), Description("What the authenticator says, in base64url.")]
    signature: Annotated[str, Encoded(), Description("Its signature, in base64url.")]


class _CreationResponse(TypedDict):
    """A new passkey."""

    clientDataJSON: Annotated[str, Encoded(), Description("What the browser has asked for, in base64url.")]
    attestationObject: Annotated[str, Encoded(), Description("The public key and its origin, in base64url.")]


class _Credential(TypedDict):
    """A passkey."""

    id: Annotated[str, Encoded(), Description("The identifier of the passkey, in base64url.")]
    rawId: Annotated[str, Encoded(), Description("The same as `id`.")]


class Assertion(_Credential):
    """What `navigator.credentials.get` returns, as `toJSON()` of a browser has it."""

    response: Annotated[
        _AssertionResponse,
        fields.Nested(input_of(_AssertionResponse, name="AssertionResponseInput"), required=True),
        Description("The answer of the authenticator."),
    ]


class NewCredential(_Credential):
    """What `navigator.credentials.create` returns, as `toJSON()` of a browser has it."""

    response: Annotated[
        _CreationResponse,
        fields.Nested(input_of(_CreationResponse, name="CreationResponseInput"), required=True),
        Description("The answer of the authenticator."),
    ]


class ChallengeAnswer(FactorAnswer):
    """A challenge of POST /auth/login or POST /auth/second-factor/options, and the answer to it."""

    challenge: Annotated[
        str, Text(max_length=1000), Description("From POST /auth/login or POST /auth/second-factor/options.")
    ]
    assertion: NotRequired[
        Annotated[
            Assertion | None,
            fields.Nested(input_of(Assertion, name="AssertionInput"), allow_none=True),
            Description("The answer of a passkey to `publicKey`."),
        ]
    ]


class NewPasskey(TypedDict):
    """A passkey to register."""

    name: Annotated[
        str, Text(max_length=MAX_NAME), Description("How the user calls it, such as the name of the device.")
    ]
    credential: Annotated[
        NewCredential,
        fields.Nested(input_of(NewCredential, name="NewCredentialInput"), required=True),
        Description("The answer of the browser to `publicKey`."),
    ]


class Passkey(TypedDict):
    """A passkey of the caller."""

    _id: ObjectId
    name: str
    createdAt: datetime
    lastUsedAt: datetime | None


class NewPublicKey(TypedDict):
    """What identifies a passkey: its identifier in base64url, its public key, and its counter of uses."""

    credentialId: str
    publicKey: bytes
    signCount: int


class StoredPasskey(NewPublicKey, Stored):
    """A passkey of a coach or client."""

    subjectId: ObjectId
    name: str
    lastUsedAt: datetime | None


class PasskeyOptions(TypedDict):
    """What a browser needs to create a passkey."""

    publicKey: Annotated[
        dict[str, object],
        fields.Dict(),
        Description("For `PublicKeyCredential.parseCreationOptionsFromJSON`."),
    ]


class PasskeyChallenge(TypedDict):
    """What a browser needs to sign in with a passkey."""

    challenge: Annotated[str, Description("To send back with the answer, within 5 minutes.")]
    publicKey: Annotated[
        dict[str, object],
        fields.Dict(),
        Description("For `PublicKeyCredential.parseRequestOptionsFromJSON`."),
    ]
