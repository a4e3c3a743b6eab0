"""Requests and responses of the customer operations."""

from __future__ import annotations

from coaching_service.core.external_identity import IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.people.customers import models

CustomerFields = input_of(models.WrittenDetails, IdentityFields, name="CustomerFields")
CustomerUpdate = input_of(models.ChangedCustomer, IdentityFields, name="CustomerUpdate")
NewCustomer = input_of(models.SentCustomer, IdentityFields, name="NewCustomer")
UpsertedCustomer = input_of(models.SentOrChangedCustomer, IdentityFields, name="UpsertedCustomer")
Customer = output_of(models.CustomerProfile, IdentityResult, name="Customer", with_private=("companyId",))
CreatedCustomer = output_of(models.CreatedCustomer, Customer)
